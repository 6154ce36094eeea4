// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"
)

// A program makes exactly 10,000 calls at once and ends. Its first sample contains all of them. increase() still shows them,
// because the server stores a zero at the time at which the counter began. Debian's Prometheus (2.42) does not support this time,
// and shows none of them. After a restart of `up` the program makes 4,000 more, and the sum over both is 14,000.
func TestFirstSecondsAreCounted(t *testing.T) {
	t.Parallel()
	dir, program := t.TempDir(), prog(t, "clocked", "e2efirst")
	up := start(t, "up", "--data-dir", dir, "--interval", "1s")
	remote, real := server(t, up.addr), realPrometheus(t, up.addr)
	bases := map[string]string{"up": "http://" + up.addr, "another server": "http://" + remote.addr, "Debian's Prometheus": real}
	for name, base := range bases {
		eventually(t, testLimit, name+" to scrape", func() error {
			got, err := query(base, `count(count_over_time(teescope_forks_total{workload="idle"}[20s]) >= 5)`, time.Now())
			if err == nil && len(got) == 0 {
				err = errors.New("not five times yet")
			}
			return err
		})
	}
	run(t, program, "10000")
	const series = `teescope_syscalls_total{workload="e2efirst",syscall="getpgid"}`
	for name, base := range bases {
		want := 10_000.0
		if base == real {
			want = 0
		}
		at := threeSamples(t, base, series, "10000")
		if first := storedSeries(t, base, series+`[1h]`, at)[0].Values[0][1]; base == real && first != "10000" {
			t.Logf("a busy machine scraped the program within its calls: the first sample is %v", first)
			continue
		}
		// At the time of a sample and with a zero before, increase() extrapolates nothing.
		got, err := query(base, `sum(increase(`+series+`[1h]))`, at)
		if err != nil {
			t.Fatal(err)
		}
		wantExactly(t, "calls by "+name, got["{}"], want)
	}
	if got, err := query(bases["up"], `count({__name__=~".+_created"})`, time.Now()); err != nil || len(got) > 0 {
		t.Errorf("%v starts are stored as series (%v)", got, err)
	}

	up.stop(t)
	up = start(t, "up", "--data-dir", dir, "--interval", "1s")
	run(t, program, "4000")
	got, err := query("http://"+up.addr, `sum(increase(`+series+`[1h]))`, threeSamples(t, "http://"+up.addr, series, "4000"))
	if err != nil {
		t.Fatal(err)
	}
	wantExactly(t, "calls before and after a restart", got["{}"], 14_000)
}

// threeSamples waits for three samples of a series with a value, and returns the time of the last one.
func threeSamples(t *testing.T, base, series, value string) (last time.Time) {
	t.Helper()
	eventually(t, testLimit, "three samples of "+series, func() error {
		stored := storedSeries(t, base, series+`[1m]`, time.Now())
		n := 0
		for _, s := range stored {
			for _, v := range s.Values {
				if v[1] == value {
					n++
					last = time.UnixMilli(int64(math.Round(v[0].(float64) * 1e3)))
				}
			}
		}
		if n < 3 || len(stored) != 1 {
			return fmt.Errorf("%d samples of %d series", n, len(stored))
		}
		return nil
	})
	return last
}
