// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// maxScrapes is the maximum number of concurrent requests for metrics: two Prometheus servers and a few terminals.
const maxScrapes = 8

// textWriter is a gatherer that writes its text itself, which is cheaper than gathering.
type textWriter interface {
	WriteText(w io.Writer, format expfmt.Format) error
}

// Metrics serves the metrics of a gatherer, in OpenMetrics or Prometheus text format as the client prefers. If gathering
// fails in part, it serves the rest.
func Metrics(g prometheus.Gatherer, log *slog.Logger) http.Handler {
	errors := scrapeErrors{log.With("part", "metrics")}
	gathered := promhttp.HandlerFor(g, promhttp.HandlerOpts{
		EnableOpenMetrics: true,
		ErrorHandling:     promhttp.ContinueOnError,
		ErrorLog:          errors,
	})
	writer, writes := g.(textWriter)
	texts := &exposition{from: writer, errors: errors}
	formats := offered()
	running := make(chan struct{}, maxScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case running <- struct{}{}:
			defer func() { <-running }()
		default:
			http.Error(w, fmt.Sprintf("%d others ask for metrics already, try again later.", maxScrapes), http.StatusServiceUnavailable)
			return
		}
		format := expfmt.NegotiateAccept(r.Header, formats...)
		if kind := format.FormatType(); writes && !r.URL.Query().Has("name[]") && (kind == expfmt.TypeTextPlain || kind == expfmt.TypeOpenMetrics) {
			texts.serve(w, r, format)
			return
		}
		gathered.ServeHTTP(w, r)
	})
}

// offered lists the available formats, best first.
func offered() []expfmt.Format {
	var all []expfmt.Format
	for _, version := range []string{expfmt.OpenMetricsVersion_1_0_0, expfmt.OpenMetricsVersion_0_0_1} {
		f, _ := expfmt.NewOpenMetricsFormat(version) // fails only for unknown versions
		all = append(all, f)
	}
	for _, t := range []expfmt.FormatType{expfmt.TypeProtoDelim, expfmt.TypeProtoText, expfmt.TypeProtoCompact, expfmt.TypeTextPlain} {
		all = append(all, expfmt.NewFormat(t))
	}
	return all
}

// exposition serves the text of a textWriter.
type exposition struct {
	from   textWriter
	errors scrapeErrors

	mu  sync.Mutex
	zip *gzip.Writer // the writer of the last scrape; nil while in use
}

// writer returns a compressing writer for w. It takes a quarter of a megabyte. A sync.Pool is emptied between two
// scrapes and would allocate a new one for each.
func (e *exposition) writer(w io.Writer) *gzip.Writer {
	e.mu.Lock()
	zip := e.zip
	e.zip = nil
	e.mu.Unlock()
	if zip == nil {
		// The default level takes twice the time and saves 5 % of the bytes.
		zip, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails only for unknown levels
	}
	zip.Reset(w)
	return zip
}

func (e *exposition) keep(zip *gzip.Writer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.zip = zip
}

func (e *exposition) serve(w http.ResponseWriter, r *http.Request, format expfmt.Format) {
	w.Header().Set("Content-Type", string(format))
	w.Header().Add("Vary", "Accept-Encoding")
	out := io.Writer(w)
	if acceptsGzip(r.Header) {
		w.Header().Set("Content-Encoding", "gzip")
		zip := e.writer(w)
		defer func() {
			if err := zip.Close(); err != nil {
				e.errors.Println("ending the text:", err)
			}
			e.keep(zip)
		}()
		out = zip
	}
	if err := e.from.WriteText(out, format); err != nil {
		e.errors.Println("writing metrics:", err)
	}
}

// acceptsGzip parses the header Accept-Encoding: names with optional weights, where 0 means refused.
func acceptsGzip(h http.Header) bool {
	for one := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(one, ";")
		if strings.TrimSpace(name) == "gzip" {
			weight = strings.ReplaceAll(weight, " ", "")
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}
