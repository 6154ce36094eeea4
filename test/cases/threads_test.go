// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teescope/teescope/internal/agent/threads"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/rules"
	"github.com/teescope/teescope/internal/server/findings"
)

// writeThread writes the files of a thread of process 7 that has run for this long.
func writeThread(t *testing.T, proc string, tid int, name string, run time.Duration) {
	t.Helper()
	dir := filepath.Join(proc, "7", "task", fmt.Sprint(tid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"stat":      fmt.Sprintf("%d (%s) R 1 7 7 0 -1 0 %s\n", tid, name, strings.Repeat("0 ", 12)+"100"+strings.Repeat(" 0", 30)),
		"schedstat": fmt.Sprintf("%d 0 1\n", run.Nanoseconds()),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAFindingNamesItsThreads: of a program with many exits, two threads with one name use 0.35 CPUs each and a third one uses
// 0.2. The agent's reader reads them from files in the form of /proc.
func TestAFindingNamesItsThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := timeline{newFleet(t)}
		l.series(existing(0, lineAll), `teescope_build_info{instance="a:1"}`)
		l.workload("redis", "sgx", 1, 10, chatter, 0, 200, lineAll)
		proc := t.TempDir()
		reader := threads.New(proc, func(string) ([]int, bool) { return []int{7}, true }, nil)
		a := findings.New(findings.Options{
			Source: l.source(), Rules: rules.All(), Interval: time.Minute, Window: 5 * time.Minute, Scrape: lineStep, Log: slog.New(slog.DiscardHandler),
			Instance: "a:1",
			Threads: func(ctx context.Context, workload string) ([]byte, error) {
				since := float64(time.Since(begin))
				writeThread(t, proc, 7, "redis-server", time.Duration(0.2*since))
				writeThread(t, proc, 8, "io_thd", time.Duration(0.35*since))
				writeThread(t, proc, 9, "io_thd", time.Duration(0.35*since))
				w := httptest.NewRecorder()
				reader.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/api/top/threads?workload="+workload, nil))
				return w.Body.Bytes(), nil
			},
		})
		f := l.judge(a, minute(110), 5*time.Minute)
		want := []analysis.Threads{
			{Name: "io_thd", Count: 2, Figure: analysis.ThreadCPU, Value: 0.7, Unit: "cores"},
			{Name: "redis-server", Count: 1, Figure: analysis.ThreadCPU, Value: 0.2, Unit: "cores"},
		}
		got := slices.Clone(f.Threads)
		for k := range got {
			got[k].Value = math.Round(1e6*got[k].Value) / 1e6
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", f.Rule, got, want)
		}
	})
}
