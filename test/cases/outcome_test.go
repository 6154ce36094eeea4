// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teescope/teescope/internal/analysis/history"
	"github.com/teescope/teescope/internal/analysis/rules"
	"github.com/teescope/teescope/internal/server/findings"
)

// lasting increases by one rate between two steps, and by another one before and after.
func lasting(usual, between float64, from, to int) string {
	u, b := usual*lineStep.Seconds(), between*lineStep.Seconds()
	start := u*float64(from-1) + b
	end := start + b*float64(to-from-1) + u
	return fmt.Sprintf("0+%gx%d %g+%gx%d %g+%gx%d", u, from-1, start, b, to-from-1, end, u, lineAll-to)
}

// TestWhatAChangeHasHelped: redis makes 30,000 calls a second and uses 0.9 cores from minute 1380 to 1440, and then 10 calls
// and 0.4 cores. The server starts again at minute 1445, before the finding closes.
func TestWhatAChangeHasHelped(t *testing.T) {
	const from, to = 1380 * 2, 1440 * 2
	for _, tt := range some([]struct {
		name   string
		change float64 // minute of the restart; 0: there is none
		gone   bool    // the workload ends at minute 1440
		want   bool
	}{
		{"a restart", 1440, false, true},
		{"a restart long before", 1420, false, false},
		{"no restart", 0, false, false},
		{"the workload ends", 0, true, false},
	}, 2) {
		synctest.Test(t, func(t *testing.T) {
			l := timeline{newFleet(t)}
			l.series(existing(0, lineAll), `teescope_build_info{instance="a:1"}`)
			l.series(existing(0, lineAll), `teescope_processes{workload="other",instance="a:1"}`)
			ends := lineAll
			if tt.gone {
				ends = to
			}
			const of = `workload="redis",instance="a:1"`
			l.series(existing(0, ends), `teescope_workload_info{%s,tee="sgx",runtime="gramine-sgx"}`, of)
			l.series(existing(0, ends), `teescope_processes{%s}`, of)
			l.series(existing(0, ends), `teescope_threads{%s}`, of)
			calls, user, system := lasting(10, chatter, from, to), lasting(0.3, 0.7, from, to), lasting(0.1, 0.2, from, to)
			if tt.gone {
				calls, user, system = counter(10, chatter, from), counter(0.3, 0.7, from), counter(0.1, 0.2, from)
				calls, user, system = shorten(calls, to), shorten(user, to), shorten(system, to)
			}
			l.series(calls, `teescope_enclave_transitions_total{%s,kind="eexit"}`, of)
			l.series(calls, `teescope_syscalls_total{%s,syscall="call000"}`, of)
			l.series(user, `teescope_cpu_seconds_total{%s,mode="user"}`, of)
			l.series(system, `teescope_cpu_seconds_total{%s,mode="system"}`, of)
			l.series(counter(500, 500, from), `teescope:operations_total{%s,counter="served",basis="configured",series="1"}`, of)
			if tt.change > 0 {
				l.series(moments(tt.change), `teescope_workload_change_timestamp_seconds{%s,change="restart"}`, of)
			}
			dir := t.TempDir()
			options := findings.Options{
				Source: l.source(), Rules: rules.All(), Interval: time.Minute, Window: 5 * time.Minute, Scrape: 15 * time.Second,
				Log: slog.New(slog.DiscardHandler), File: filepath.Join(dir, "findings"), HistoryFile: filepath.Join(dir, "history"),
			}
			run := func(begins, ends float64) {
				a := findings.New(options)
				if err := a.Init(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Until(minute(begins)))
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- a.Run(ctx) }()
				time.Sleep(time.Until(minute(ends)) + time.Second)
				synctest.Wait()
				stop()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			run(1395, 1444)
			run(1445, 1475)
			past, err := history.Open(options.HistoryFile, options.Log)
			if err != nil {
				t.Fatal(err)
			}
			all := past.Ask(history.Question{To: minute(1475)}, minute(1475)).Findings
			i := slices.IndexFunc(all, func(e history.Entry) bool { return e.Rule == "ocall-bound" })
			if i < 0 || all[i].Open() || !all[i].Assessed {
				t.Fatalf("%s: %+v", tt.name, all)
			}
			e := all[i]
			if !tt.want {
				if e.Outcome != nil != tt.gone || tt.gone && !e.Outcome.Gone {
					t.Errorf("%s: ended at %s, outcome %+v", tt.name, e.Ended, e.Outcome)
				}
				return
			}
			o := e.Outcome
			if o == nil || len(o.After) != 1 || o.After[0].What != "redis was restarted" || !o.After[0].At.Equal(minute(1440)) || o.Gone || o.Evidence == nil || o.Cores == nil {
				t.Fatalf("%s: ended at %s, outcome %+v", tt.name, e.Ended, o)
			}
			if c := o.Cores; math.Abs(c.Before-0.9) > 0.001 || math.Abs(c.After-0.4) > 0.001 || c.NBefore != 10 || c.NAfter < 8 || c.Low == nil || *c.Low > -0.499 || *c.High < -0.501 {
				t.Errorf("%s: cores %+v", tt.name, c)
			}
			if c := o.Operations; c == nil || math.Abs(c.Before-500) > 1 || math.Abs(c.After-500) > 1 {
				t.Errorf("%s: operations %+v", tt.name, c)
			}
			if c := o.PerOperation; c == nil || math.Abs(c.Before-0.0018) > 1e-5 || math.Abs(c.After-0.0008) > 1e-5 || c.Low == nil || *c.Low > -0.00099 || *c.High < -0.00101 {
				t.Errorf("%s: CPU time of an operation %+v", tt.name, c)
			}
			if c := o.Evidence; c.Name != e.Evidence[0].Name || math.Abs(c.Before-chatter) > 30 || math.Abs(c.After-10) > 1 {
				t.Errorf("%s: evidence %+v of %+v", tt.name, c, e.Evidence)
			}
			if len(past.Ask(history.Question{To: minute(1475), Changed: true, Rule: e.Rule}, minute(1475)).Findings) != 1 {
				t.Errorf("%s: it is not among those that ended after a change", tt.name)
			}
		})
	}
}

// shorten cuts a sequence of two parts off at a step.
func shorten(values string, at int) string {
	var a, b, c, d float64
	var n, m int
	if _, err := fmt.Sscanf(values, "%g+%gx%d %g+%gx%d", &a, &b, &n, &c, &d, &m); err != nil {
		panic(err) // counter writes another form
	}
	return fmt.Sprintf("%g+%gx%d %g+%gx%d", a, b, n, c, d, at-n-1)
}
