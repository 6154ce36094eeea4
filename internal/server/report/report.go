// SPDX-License-Identifier: Apache-2.0

// Package report writes the page and the answers to all its queries as one HTML file, which needs no server.
//
// The queries are the same as on the page: questions.json is generated from web/src/report (`make generate-dashboards`). The
// page's own code, built for reports, draws the answers. The package does not draw, does not depend on a metric, and the
// file makes no connections.
package report

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
)

//go:embed questions.json
var questions []byte

// Options configure a report.
type Options struct {
	Server    string // the server's name for display
	Version   string // of this program
	Source    query.Source
	Page      fs.FS // the built page, with report/report.js and report/report.css
	From, To  time.Time
	Workloads []string      // empty for all
	Scrape    time.Duration // between two scrapes
	Started   time.Time     // when the agent started to count; zero when unknown
	Made      time.Time
	Findings  json.RawMessage // in the form of docs/user/findings.schema.json
}

// Summary describes the content of a report.
type Summary struct {
	Questions, Series int
	LeftOut           []string // what is missing, and why
}

// NoDataError reports that the server has no data for the time range.
type NoDataError struct {
	Server   string
	From, To time.Time
}

// Error returns what to do.
func (e *NoDataError) Error() string {
	return fmt.Sprintf("%s has no series between %s and %s: no agent was scraped then.\n"+
		"Choose another time with --from and --to, or a longer --window", e.Server,
		e.From.UTC().Format(time.RFC3339), e.To.UTC().Format(time.RFC3339))
}

// recording is the data of the file. web/src/report/recording.ts reads it.
type recording struct {
	Server    string          `json:"server"`
	Version   string          `json:"version"`
	Made      int64           `json:"made"` // times are Unix seconds
	From      int64           `json:"from"`
	To        int64           `json:"to"`
	Workloads []string        `json:"workloads"`
	Scrape    float64         `json:"scrapeInterval"` // seconds
	Started   float64         `json:"startedAt,omitempty"`
	Findings  json.RawMessage `json:"findings"`
	Answers   []answer        `json:"answers"`
	LeftOut   []string        `json:"leftOut"`
}

// Write queries the server for all data of the report and writes the file. It changes nothing on the server.
func Write(ctx context.Context, w io.Writer, o Options) (Summary, error) {
	var all []question
	if err := json.Unmarshal(questions, &all); err != nil {
		return Summary{}, fmt.Errorf("reading the queries of a report: %w", err)
	}
	r := recording{
		Server: o.Server, Version: o.Version, Made: o.Made.Unix(), From: o.From.Unix(), To: o.To.Unix(),
		Workloads: append([]string{}, o.Workloads...), Scrape: o.Scrape.Seconds(), Findings: o.Findings,
	}
	if !o.Started.IsZero() {
		r.Started = float64(o.Started.UnixMilli()) / 1000
	}
	var err error
	if r.Answers, r.LeftOut, err = record(ctx, o, all); err != nil {
		return Summary{}, err
	}
	s := Summary{Questions: len(all), LeftOut: r.LeftOut}
	for _, a := range r.Answers {
		s.Series += len(a.Series)
	}
	if s.Series == 0 {
		return Summary{}, &NoDataError{Server: o.Server, From: o.From, To: o.To}
	}
	packed, err := pack(r)
	if err != nil {
		return Summary{}, err
	}
	return s, document(w, o, packed)
}

// pack returns the recording as compressed JSON.
func pack(r recording) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(z).Encode(r); err != nil {
		return nil, fmt.Errorf("writing the answers: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compressing the answers: %w", err)
	}
	return b.Bytes(), nil
}
