// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// leaver is a client that disconnects after the first bytes.
type leaver struct{ http.ResponseWriter }

func (leaver) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestScrapeErrors(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	registry := prometheus.NewRegistry()
	for _, name := range []string{"a", "b", "c"} {
		registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: "H."}))
	}
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	Metrics(registry, logger).ServeHTTP(leaver{httptest.NewRecorder()}, r)
	if log.Len() > 0 {
		t.Errorf("a client that disconnects is logged:\n%s", log.String())
	}
	broken := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := registry.Gather()
		return families, errors.Join(err, errors.New("one collector is broken"))
	})
	Metrics(broken, logger).ServeHTTP(httptest.NewRecorder(), r)
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "one collector is broken") {
		t.Errorf("the broken collector is not logged:\n%s", log.String())
	}
}

// texts is a gatherer that writes its own text.
type texts struct {
	prometheus.Gatherer
	err error
}

func (w texts) WriteText(out io.Writer, format expfmt.Format) error {
	_, err := fmt.Fprintf(out, "by itself as %s", format)
	return errors.Join(err, w.err)
}

// A gatherer that writes text is used for text, in the encoding that the client accepts. The library handles all other
// requests.
func TestTextIsWrittenByWhoCan(t *testing.T) {
	var log bytes.Buffer
	h := Metrics(texts{gatherer(), errors.New("one collector is broken")}, slog.New(slog.NewTextHandler(&log, nil)))
	answer := func(target string, headers ...string) (string, http.Header) {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		body := w.Body.String()
		if w.Header().Get("Content-Encoding") == "gzip" {
			body = "zipped " + gunzip(t, body)
		}
		return body, w.Header()
	}
	for _, tt := range []struct {
		target  string
		headers []string
		want    string
		kind    string
	}{
		{"/metrics", nil, "by itself as text/plain", "text/plain; version=0.0.4"},
		{"/metrics", []string{"Accept", "application/openmetrics-text;version=1.0.0"}, "by itself as application/openmetrics-text; version=1.0.0", "application/openmetrics-text; version=1.0.0"},
		{"/metrics", []string{"Accept-Encoding", "br, gzip;q=0.5"}, "zipped by itself", "text/plain"},
		{"/metrics", []string{"Accept-Encoding", "gzip;q=0"}, "by itself", "text/plain"},
		{"/metrics?name[]=things_total", nil, "# HELP things_total", "text/plain"},
		{"/metrics", []string{"Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text"}, "name:", "application/vnd.google.protobuf"},
	} {
		body, header := answer(tt.target, tt.headers...)
		if !strings.HasPrefix(body, tt.want) || !strings.HasPrefix(header.Get("Content-Type"), tt.kind) {
			t.Errorf("%s %q: %s %.60q, want %s %q", tt.target, tt.headers, header.Get("Content-Type"), body, tt.kind, tt.want)
		}
	}
	if !strings.Contains(log.String(), "one collector is broken") {
		t.Errorf("the broken collector is not logged:\n%s", log.String())
	}
}
