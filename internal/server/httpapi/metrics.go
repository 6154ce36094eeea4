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

// maxScrapes is the most who may ask for metrics at once: a pair of Prometheus servers and some terminals.
const maxScrapes = 8

// textWriter is a gatherer that writes its text by itself, which costs less than gathering.
type textWriter interface {
	WriteText(w io.Writer, format expfmt.Format) error
}

// Metrics is the exposition of a gatherer, in OpenMetrics or in Prometheus' text format as the
// client likes. What could be gathered is served also when something could not.
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

// offered are the formats in which metrics are to be had, the best first.
func offered() []expfmt.Format {
	var all []expfmt.Format
	for _, version := range []string{expfmt.OpenMetricsVersion_1_0_0, expfmt.OpenMetricsVersion_0_0_1} {
		f, _ := expfmt.NewOpenMetricsFormat(version) // fails for versions that there are not
		all = append(all, f)
	}
	for _, t := range []expfmt.FormatType{expfmt.TypeProtoDelim, expfmt.TypeProtoText, expfmt.TypeProtoCompact, expfmt.TypeTextPlain} {
		all = append(all, expfmt.NewFormat(t))
	}
	return all
}

// exposition serves what a textWriter writes.
type exposition struct {
	from   textWriter
	errors scrapeErrors

	mu  sync.Mutex
	zip *gzip.Writer // that of the last scrape; nil while one has it
}

// writer is one that compresses to w. It holds a quarter of a megabyte: a sync.Pool, which is emptied between two
// scrapes, would have it made anew for each.
func (e *exposition) writer(w io.Writer) *gzip.Writer {
	e.mu.Lock()
	zip := e.zip
	e.zip = nil
	e.mu.Unlock()
	if zip == nil {
		// The default compression takes twice as long, and saves a twentieth of the bytes.
		zip, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails for levels that there are not
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

// acceptsGzip reads the header Accept-Encoding: names, each perhaps with a weight, of which 0 is a refusal.
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
