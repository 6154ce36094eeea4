// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/teescope/teescope/internal/lib/clock"
)

// Own is what teescope itself uses in user space. The cost of its BPF programs is in the rows.
type Own struct {
	BinaryMB      float64     `json:"binary_mb"`
	AgentIdle     Consumption `json:"agent_idle"`
	AgentLoaded   Consumption `json:"agent_under_redis"`
	UpIdle        Consumption `json:"up_idle"`
	FirstChart    float64     `json:"up_seconds_to_first_rate"`
	FirstValue    float64     `json:"up_seconds_to_first_value"`
	ScrapeSeconds Estimate    `json:"scrape_seconds"`
}

// Consumption is the use of one teescope process over a period.
type Consumption struct {
	Seconds    float64 `json:"seconds"`
	CPUPercent float64 `json:"cpu_percent_of_one_core"`
	ResidentMB float64 `json:"resident_mb"`
	Series     int     `json:"series"`
	Ready      float64 `json:"seconds_to_ready"`
}

const mega = 1e6

func ownCost(ctx context.Context, progress io.Writer, o options, dir string) (Own, error) {
	var own Own
	info, err := os.Stat(o.teescope)
	if err != nil {
		return own, err
	}
	own.BinaryMB = float64(info.Size()) / mega

	fmt.Fprintln(progress, "agent: at rest")
	var scrapes []float64
	if own.AgentIdle, err = consume(ctx, o, &scrapes, "agent"); err != nil {
		return own, err
	}
	fmt.Fprintln(progress, "agent: under redis")
	under, err := loadNamed("redis").start(ctx, dir)
	if err != nil {
		return own, err
	}
	own.AgentLoaded, err = consume(ctx, o, &scrapes, "agent")
	under.stop()
	if err != nil {
		return own, err
	}
	own.ScrapeSeconds = estimate(scrapes)

	fmt.Fprintln(progress, "up: at rest")
	if own.FirstValue, own.FirstChart, err = firstChart(ctx, o, filepath.Join(dir, "first")); err != nil {
		return own, err
	}
	var none []float64
	own.UpIdle, err = consume(ctx, o, &none, "up", "--data-dir", filepath.Join(dir, "up"))
	return own, err
}

// consume runs teescope for the idle time, and scrapes it as often as a Prometheus server does.
func consume(ctx context.Context, o options, scrapes *[]float64, args ...string) (Consumption, error) {
	var c Consumption
	t, err := startTeescope(ctx, o.teescope, args...)
	if err != nil {
		return c, err
	}
	defer t.stop()
	c.Ready = t.ready.Seconds()
	if err := clock.Sleep(ctx, o.settle); err != nil {
		return c, err
	}
	before, err := t.cpu()
	if err != nil {
		return c, err
	}
	begin := time.Now()
	for time.Since(begin) < o.idle {
		if err := clock.Sleep(ctx, o.scrapeEach); err != nil {
			return c, err
		}
		at := time.Now()
		body, err := fetch(ctx, t.url+"/metrics")
		if err != nil {
			return c, err
		}
		*scrapes = append(*scrapes, time.Since(at).Seconds())
		c.Series = series(body)
	}
	after, err := t.cpu()
	if err != nil {
		return c, err
	}
	c.Seconds = time.Since(begin).Seconds()
	c.CPUPercent = (after - before) / c.Seconds * 100
	rss, err := t.resident()
	c.ResidentMB = rss / mega
	return c, err
}

// series counts the samples of an exposition.
func series(body []byte) int {
	n := 0
	for line := range bytes.Lines(body) {
		if len(line) > 1 && line[0] != '#' {
			n++
		}
	}
	return n
}

// firstChart returns the time from the start of `up` until a gauge and until a rate can be drawn.
func firstChart(ctx context.Context, o options, dir string) (value, rate float64, err error) {
	begin := time.Now()
	t, err := startTeescope(ctx, o.teescope, "up", "--data-dir", dir)
	if err != nil {
		return 0, 0, err
	}
	defer t.stop()
	if err = answers(ctx, t.url, `sum(teescope_processes)`); err != nil {
		return 0, 0, err
	}
	value = time.Since(begin).Seconds()
	err = answers(ctx, t.url, `sum(rate(teescope_syscalls_total[1m]))`)
	return value, time.Since(begin).Seconds(), err
}

// answers waits until a query has a result.
func answers(ctx context.Context, base, expr string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		body, err := fetch(ctx, base+"/api/v1/query?query="+url.QueryEscape(expr))
		if err != nil {
			return err
		}
		var answer struct {
			Data struct{ Result []any }
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			return err
		}
		if len(answer.Data.Result) > 0 {
			return nil
		}
		if err := clock.Sleep(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for a result of %s: %w", expr, err)
		}
	}
}
