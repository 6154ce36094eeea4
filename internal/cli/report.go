// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/server/report"
)

// ReportOptions describe a report.
type ReportOptions struct {
	File     string // a run file; when empty, the server is queried
	Server   string
	Access   remote.Access
	From, To time.Time // zero for the whole of a run file
	Workload string    // empty: all
	Silences string    // a file with silences; when empty, those of the server count
	Timeout  time.Duration
	Version  string
	Page     fs.FS
}

// Report queries a server or a run file for everything that the page shows of a time range and writes it as one HTML file.
func Report(ctx context.Context, w io.Writer, o ReportOptions) (report.Summary, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not finished within %s (--timeout)", o.Timeout))
	defer cancel()
	fail := func(err error) (report.Summary, error) {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, ctx.Err()) {
			err = fmt.Errorf("reporting on %s: %w", cmp.Or(o.File, o.Server), cause)
		}
		return report.Summary{}, err
	}
	source, target, scrape, err := o.open(ctx)
	if err != nil {
		return fail(err)
	}
	if err := knownWorkload(ctx, source, o); err != nil {
		return fail(err)
	}
	_, found, err := Analyze(ctx, Analysis{
		File: o.File, Server: o.Server, Access: o.Access, Window: o.To.Sub(o.From), At: o.To, Workload: o.Workload, Timeout: o.Timeout,
		Silences: o.Silences,
	})
	if err != nil {
		return fail(err)
	}
	var findings bytes.Buffer
	if err := found(0).JSON(&findings); err != nil {
		return fail(err)
	}
	ro := report.Options{
		Server: target, Version: o.Version, Source: source, Page: o.Page, From: o.From, To: o.To,
		Scrape: scrape, Made: time.Now(), Findings: findings.Bytes(),
	}
	if o.Workload != "" {
		ro.Workloads = []string{o.Workload}
	}
	started, err := source.Instant(ctx, `max(process_start_time_seconds and on (instance, job) teescope_build_info)`, o.To)
	if err != nil {
		return fail(err)
	}
	if len(started) == 1 {
		ro.Started = time.UnixMilli(int64(1000 * started[0].Value))
	}
	summary, err := report.Write(ctx, w, ro)
	if err != nil {
		return fail(err)
	}
	return summary, nil
}

// open returns what to query, its name, and the time between its samples. For a run file it sets the time range.
func (o *ReportOptions) open(ctx context.Context) (query.Source, string, time.Duration, error) {
	fail := func(err error) (query.Source, string, time.Duration, error) { return nil, "", 0, err }
	if o.File != "" {
		r, err := readRun(o.File)
		if err != nil {
			return fail(err)
		}
		if o.From.IsZero() {
			o.From, o.To = r.span()
		}
		source, err := r.store.Source()
		if err != nil {
			return fail(fmt.Errorf("%s: %w", o.File, err))
		}
		return source, o.File, max(time.Second, time.Duration(r.Meta.Interval*float64(time.Second))), nil
	}
	server, source, err := openServer(ctx, o.Server, o.Access, o.Timeout)
	if err != nil {
		return fail(err)
	}
	return source, server.Target(), scrapeInterval(ctx, server), nil
}

// maxNamed bounds the number of workloads that an error names.
const maxNamed = 12

// knownWorkload returns an error when the requested workload was not seen in the time range.
func knownWorkload(ctx context.Context, source query.Source, o ReportOptions) error {
	if o.Workload == "" {
		return nil
	}
	window := model.Duration(o.To.Sub(o.From).Round(time.Second))
	samples, err := source.Instant(ctx, fmt.Sprintf("count by (workload) (count_over_time(teescope_workload_info[%s]))", window), o.To)
	if err != nil {
		return err
	}
	var names []string
	for _, s := range samples {
		names = append(names, text.Terminal(s.Labels["workload"]))
	}
	slices.Sort(names)
	switch {
	case slices.Contains(names, o.Workload):
		return nil
	case len(names) == 0:
		return &report.NoDataError{Server: cmp.Or(o.File, o.Server), From: o.From, To: o.To}
	}
	more := ""
	if len(names) > maxNamed {
		more = fmt.Sprintf(" and %d more", len(names)-maxNamed)
		names = names[:maxNamed]
	}
	return fmt.Errorf("--workload %q: no workload with this name was seen in this time range; seen were %s%s", o.Workload, strings.Join(names, ", "), more)
}

// maxTargets bounds the size of the answer about targets, in bytes.
const maxTargets = 4 << 20

// defaultInterval is assumed when a server does not report its scrape interval. The page assumes the same.
const defaultInterval = 5 * time.Second

// scrapeInterval returns the shortest scrape interval of the server's targets. The page uses the same.
func scrapeInterval(ctx context.Context, server *remote.Server) time.Duration {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL("api/v1/targets")+"?state=active", nil)
	if err != nil {
		return defaultInterval
	}
	resp, err := server.Client().Do(r)
	if err != nil {
		return defaultInterval
	}
	defer resp.Body.Close()
	var told struct {
		Data struct {
			ActiveTargets []struct {
				ScrapeInterval string `json:"scrapeInterval"`
			} `json:"activeTargets"`
		} `json:"data"`
	}
	if json.NewDecoder(io.LimitReader(resp.Body, maxTargets)).Decode(&told) != nil {
		return defaultInterval
	}
	shortest := time.Duration(math.MaxInt64)
	for _, t := range told.Data.ActiveTargets {
		if d, err := model.ParseDuration(t.ScrapeInterval); err == nil && d > 0 {
			shortest = min(shortest, time.Duration(d))
		}
	}
	if shortest == math.MaxInt64 {
		return defaultInterval
	}
	return max(time.Second, shortest)
}
