// SPDX-License-Identifier: Apache-2.0

// Package report writes the page with all that it would ask as one HTML file, which needs no server.
//
// What is asked is what the page asks: questions.json is written from web/src/report (`make generate-dashboards`), and what
// draws the answers is the page's own code, built for it. It refuses to draw anything itself, to know a metric, and to let
// the file ask anybody anything.
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

// Options are what a report is of.
type Options struct {
	Server    string // its name, for people
	Version   string // of the program that writes
	Source    query.Source
	Page      fs.FS // the built page, with report/report.js and report/report.css
	From, To  time.Time
	Workloads []string      // none means all
	Scrape    time.Duration // between two scrapes
	Started   time.Time     // when the agent began to count; zero when it is not known
	Made      time.Time
	Findings  json.RawMessage // in the form of docs/user/findings.schema.json
}

// Summary is what a report has in it.
type Summary struct {
	Questions, Series int
	LeftOut           []string // what is not in it, and why
}

// NoDataError says that the server has nothing of the time that was asked for.
type NoDataError struct {
	Server   string
	From, To time.Time
}

// Error says what to do.
func (e *NoDataError) Error() string {
	return fmt.Sprintf("%s has no series between %s and %s: no agent was scraped then.\n"+
		"Choose another time with --from and --to, or a longer --window", e.Server,
		e.From.UTC().Format(time.RFC3339), e.To.UTC().Format(time.RFC3339))
}

// recording is what the file holds for the page: web/src/report/recording.ts reads it.
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

// Write asks the server for all that the report shows and writes the file. It changes nothing there.
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

// pack is the recording as compressed JSON.
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
