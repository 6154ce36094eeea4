// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"github.com/teescope/teescope/internal/lib/clock"
)

// number returns the result of a query that has one.
func (s *server) number(ctx context.Context, query string) (float64, error) {
	return s.numberAt(ctx, query, "")
}

// numberAt does the same at a time, in seconds.
func (s *server) numberAt(ctx context.Context, query, at string) (float64, error) {
	params := url.Values{"query": {query}}
	if at != "" {
		params["time"], params["nocache"] = []string{at}, []string{"1"}
	}
	body, status, err := s.get(ctx, "/api/v1/query?"+params.Encode())
	if err != nil {
		return 0, err
	}
	var answer struct {
		Error string
		Data  struct{ Result []struct{ Value [2]any } }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return 0, fmt.Errorf("%s: status %d: %w", query, status, err)
	}
	if status != http.StatusOK {
		return 0, fmt.Errorf("%s: status %d: %s", query, status, answer.Error)
	}
	if len(answer.Data.Result) != 1 {
		return 0, nil
	}
	text, _ := answer.Data.Result[0].Value[1].(string)
	return strconv.ParseFloat(text, 64)
}

// reportDiscovery waits until all agents are scraped, and reports when that was.
func (s *server) reportDiscovery(ctx context.Context, out io.Writer, agents int, interval time.Duration) error {
	began := time.Now()
	for {
		up, err := s.number(ctx, `count(up{job="teescope",instance=~"node.*"} == 1)`)
		if err != nil {
			return err
		}
		if took := time.Since(began); int(up) >= agents {
			_, err := fmt.Fprintf(out, "all are found and scraped %v after the start\n", took.Round(100*time.Millisecond))
			return err
		} else if took > time.Minute+3*interval {
			_, err := fmt.Fprintf(out, "only %.0f of %d agents are scraped %v after the start, load of the machine %s\n", up, agents, took.Round(time.Second), load())
			return err
		}
		if err := clock.Sleep(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
}

// reportScrapes reports whether agents are scraped within the interval.
func (s *server) reportScrapes(ctx context.Context, out io.Writer, d, interval time.Duration) error {
	missed, scrapes, err := s.missed(ctx, d, interval)
	if err != nil {
		return err
	}
	var took [2]float64
	for i, q := range []string{"0.5", "0.99"} {
		if took[i], err = s.number(ctx, `quantile(`+q+`, scrape_duration_seconds{job="teescope"})`); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "scrapes in %v: %d, failed or missing: %d; a scrape takes p50 %.3f s, p99 %.3f s\n", d, scrapes, missed, took[0], took[1])
	return err
}

// reportAnalysis waits for an evaluation that begins now, and reports it.
func (s *server) reportAnalysis(ctx context.Context, out io.Writer) error {
	type report struct {
		At        time.Time
		Workloads int
		Findings  []json.RawMessage
		LeftOut   int `json:"left_out"`
		Problems  []struct{ Kind, Error, Query string }
	}
	var r report
	began := time.Now()
	for r.At.Before(began) {
		body, status, err := s.get(ctx, "/api/findings")
		if err != nil {
			return err
		}
		if status == http.StatusOK {
			if err := json.Unmarshal(body, &r); err != nil {
				return fmt.Errorf("reading the findings: %w", err)
			}
		}
		if time.Since(began) > 3*time.Minute {
			fmt.Fprintf(out, "%s: no evaluation within 3 minutes\n", s.name())
			break
		}
		if err := clock.Sleep(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
	cpu, err := s.metric(ctx, "teescope_analysis_cpu_seconds_total")
	if err != nil {
		fmt.Fprintf(out, "the CPU time of the analysis is unknown: %v\n", err)
	}
	seconds, err := s.metric(ctx, "teescope_analysis_seconds")
	if err != nil {
		fmt.Fprintf(out, "the duration of the analysis is unknown: %v\n", err)
	}
	kinds := map[string]int{}
	examples := map[string]string{}
	for _, p := range r.Problems {
		kinds[p.Kind]++
		examples[p.Kind] = p.Error + " " + p.Query
	}
	fmt.Fprintf(out, "analysis: %d workloads, %d findings and %d left out, problems %v, the last took %.1f s, all %.1f s of CPU time, load of the machine %s\n",
		r.Workloads, len(r.Findings), r.LeftOut, kinds, seconds, cpu, load())
	for kind, text := range examples {
		fmt.Fprintf(out, "  %s: %.300s\n", kind, text)
	}
	return nil
}

// reportElsewhere starts a second server without a database, which asks the engine, and runs the queries and the analysis. It compares
// what the engine has with the samples of the server own.
func (o options) reportElsewhere(ctx context.Context, out io.Writer, e *engine, own *server, queries []string, dir string) error {
	s, err := startServer(ctx, o, filepath.Join(dir, "none"), "--query.url", e.query, "--query.http-config-file", o.access)
	if err != nil {
		return err
	}
	before, err := e.cost()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nthe same from %s:\n", e.query)
	err = errors.Join(s.reportQueries(ctx, out, queries, o), s.reportAnalysis(ctx, out), s.report(out, "after the queries"),
		e.report(out, "after the queries"), own.reportSent(ctx, out), reportLost(ctx, out, own, s, int(o.settle.Seconds())), s.stop())
	after, wrong := e.cost()
	fmt.Fprintf(out, "%s used %.1f s of CPU time for that\n", e.query, (after.cpu - before.cpu).Seconds())
	return errors.Join(err, wrong)
}
