// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// maxScrapes is the maximum number of concurrent requests for metrics that cannot share an answer, besides those of regular scrapers.
const maxScrapes = 8

// textWriter is a gatherer that writes its text itself, which is cheaper than gathering.
type textWriter interface {
	WriteText(w io.Writer, format expfmt.Format) error
}

// Metrics serves the metrics of a gatherer, in OpenMetrics or Prometheus text format as the client prefers. If gathering
// fails in part, it serves the rest. Requests at the same time share one scrape if the gatherer writes text.
func Metrics(g prometheus.Gatherer, log *slog.Logger) http.Handler { return newMetrics(g, log, nil) }

// newMetrics returns the handler of Metrics. The gate delays clients that ask too often; nil means none.
func newMetrics(g prometheus.Gatherer, log *slog.Logger, gate *gate) http.Handler {
	errors := scrapeErrors{log.With("part", "metrics")}
	gathered := promhttp.HandlerFor(g, promhttp.HandlerOpts{
		EnableOpenMetrics: true,
		ErrorHandling:     promhttp.ContinueOnError,
		ErrorLog:          errors,
	})
	writer, writes := g.(textWriter)
	texts := newExposition(writer, errors)
	formats := offered()
	running := newAdmission(maxScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived := time.Now()
		payer, admitted := gate.enter(w, r)
		if !admitted {
			return
		}
		regular := gate != nil && payer == nil
		format := expfmt.NegotiateAccept(r.Header, formats...)
		if kind := format.FormatType(); writes && !r.URL.Query().Has("name[]") && (kind == expfmt.TypeTextPlain || kind == expfmt.TypeOpenMetrics) {
			texts.serve(w, r, format, arrived, payer, regular)
			return
		}
		end, ok := running.admit(regular)
		if !ok {
			tooMany(w, maxScrapes)
			return
		}
		defer end()
		defer payer.paySince(cpuTime())
		gathered.ServeHTTP(w, r)
	})
}

// admission limits concurrent requests. Regular scrapers have places that others cannot take.
type admission struct{ all, regular chan struct{} }

func newAdmission(most int) admission {
	return admission{make(chan struct{}, most), make(chan struct{}, maxRegular)}
}

// admit returns false if there are too many requests. The returned function ends the request.
func (a admission) admit(regular bool) (end func(), ok bool) {
	if regular {
		select {
		case a.regular <- struct{}{}:
			return func() { <-a.regular }, true
		default: // a connection can have several requests at a time
		}
	}
	select {
	case a.all <- struct{}{}:
		return func() { <-a.all }, true
	default:
		return nil, false
	}
}

func tooMany(w http.ResponseWriter, n int) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, fmt.Sprintf("%d other requests for metrics are being answered: try again later.", n), http.StatusServiceUnavailable)
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
