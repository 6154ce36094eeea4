// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// seriesCount is what teescope cardinality writes as JSON.
type seriesCount struct {
	Series   int
	Machines int
	Stored   int `json:"stored_by_teescope_server"`
	Metrics  []struct {
		Name   string
		Series int
		Labels map[string]int
	}
	Labels []struct {
		Name   string
		Values int
	}
}

func (c seriesCount) byName() map[string]int {
	all := map[string]int{}
	for _, m := range c.Metrics {
		all[m.Name] = m.Series
	}
	return all
}

func cardinality(t *testing.T, args ...string) seriesCount {
	t.Helper()
	var c seriesCount
	out := run(t, binary, append([]string{"cardinality", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return c
}

// A real exposition is counted by its lines, and by cardinality at the one that serves it, at Debian's Prometheus and at a
// teescope server that scrape it. It is a copy, so that the number of series does not change.
func TestCardinalityIsTheNumberOfLines(t *testing.T) {
	t.Parallel()
	text, err := get("http://" + agent(t).addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	byName, all, syscalls := map[string]int{}, 0, map[string]bool{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		name := line[:strings.IndexAny(line, "{ ")]
		byName[name]++
		all++
		if _, rest, is := strings.Cut(line, `syscall="`); is {
			syscalls[rest[:strings.IndexByte(rest, '"')]] = true
		}
	}
	copied := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(copied.Close)
	addr := strings.TrimPrefix(copied.URL, "http://")

	at := cardinality(t, "--connect", addr)
	if at.Series != all || !maps.Equal(at.byName(), byName) {
		t.Errorf("the agent: %d series, and %d lines", at.Series, all)
	}
	real, ours := realPrometheus(t, addr), "http://"+server(t, addr).addr
	for _, base := range []string{real, ours} {
		eventually(t, testLimit, "a scrape by "+base, func() error {
			got, err := query(base, fmt.Sprintf(`scrape_series_added{instance=%q}`, addr), time.Now())
			if err == nil && len(got) != 1 {
				err = fmt.Errorf("%v", got)
			}
			return err
		})
	}
	// A scrape adds series of its own. Prometheus' are up and scrape_*.
	in := cardinality(t, "--server", real).byName()
	maps.DeleteFunc(in, func(name string, _ int) bool { return name == "up" || strings.HasPrefix(name, "scrape_") })
	if !maps.Equal(in, byName) {
		t.Errorf("Prometheus has\n%v, and the lines are\n%v", in, byName)
	}
	for _, l := range cardinality(t, "--server", real).Labels {
		if l.Name == "syscall" && l.Values != len(syscalls) {
			t.Errorf("%d system calls in Prometheus, %d in the lines", l.Values, len(syscalls))
		}
	}
	// The server has series of its own too, which are of another instance.
	got, err := query(ours, fmt.Sprintf(`count({job="teescope",instance=%q,__name__!~"up|scrape_.*"})`, addr), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	stored := int(got["{}"])
	if stored != at.Stored {
		t.Errorf("the server stores %d series, and %d were announced", stored, at.Stored)
	}
}
