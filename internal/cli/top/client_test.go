// SPDX-License-Identifier: Apache-2.0

package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/proctest"
	"github.com/teescope/teescope/internal/lib/remote"
)

// serve answers each request with the next of the files of testdata. After the last one it repeats that.
func serve(t *testing.T, files ...string) string {
	t.Helper()
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		data, err := os.ReadFile("testdata/" + files[min(n, len(files)-1)])
		if err != nil {
			t.Error(err)
		}
		n++
		_, _ = w.Write(data)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func scrape(t *testing.T, target string) (*Sample, error) {
	t.Helper()
	c, err := NewClient(target, remote.Access{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Scrape(context.Background())
}

func TestScrape(t *testing.T) {
	addr := serve(t, "before.prom")
	for _, target := range []string{addr, "http://" + addr, "http://" + addr + "/metrics"} {
		s, err := scrape(t, target)
		if err != nil || len(s.Workloads) == 0 || time.Since(s.At) > time.Minute {
			t.Errorf("%s: %v", target, err)
		}
	}
}

func TestScrapeErrors(t *testing.T) {
	free := proctest.FreeAddr(t)
	_, err := scrape(t, free)
	var absent *remote.NotListeningError
	if !errors.As(err, &absent) || absent.Target != free || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("without a listener: %v", err)
	}

	answer := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	for _, tt := range []struct {
		status     int
		body, want string
	}{
		{503, "teescope is not ready: loading\nmore", "503 Service Unavailable: teescope is not ready: loading"},
		{403, "\x1b[31mno", "403 Forbidden: \ufffd[31mno"},
		{200, "<html>", "is not a teescope agent"},
		{200, "up 1\n", "is not a teescope agent"},
	} {
		if _, err := scrape(t, answer(tt.status, tt.body)); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "more") {
			t.Errorf("%d %q: %v, want %q", tt.status, tt.body, err, tt.want)
		}
	}
}

func TestOnce(t *testing.T) {
	o := options
	o.Interval, o.Filter = time.Millisecond, "redis"
	for _, asJSON := range []bool{false, true} {
		c, err := NewClient(serve(t, "before.prom", "after.prom"), remote.Access{})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := Once(context.Background(), &out, c, o, asJSON); err != nil {
			t.Fatal(err)
		}
		if asJSON {
			checkJSON(t, out.Bytes())
			continue
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[0], "WORKLOAD") || strings.Contains(out.String(), "\x1b") {
			t.Errorf("the table is:\n%s", out.String())
		}
	}
}

func checkJSON(t *testing.T, data []byte) {
	t.Helper()
	var table jsonTable
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&table); err != nil {
		t.Fatal(err)
	}
	if len(table.Workloads) != 2 || table.Seconds <= 0 || table.Target == "" {
		t.Fatalf("the JSON is:\n%s", data)
	}
	w := table.Workloads[0]
	sum := 0.0
	for _, v := range w.Syscalls {
		sum += v
	}
	if w.Kind != "program" || w.TEE != "none" || w.PerSecond["calls"] <= 0 || sum/w.PerSecond["calls"] < 0.999 || sum/w.PerSecond["calls"] > 1.001 {
		t.Errorf("the first workload is %+v", w)
	}
}

func TestOnceTable(t *testing.T) {
	table := compare(sample(t, "enclaves-before.prom", recorded), sample(t, "enclaves-after.prom", recorded.Add(2*time.Second)))
	order(table.Rows, "cpu", false)
	var out bytes.Buffer
	if err := writeTable(&out, table); err != nil {
		t.Fatal(err)
	}
	golden(t, "once", out.String())
}

func TestOnceAcrossARestart(t *testing.T) {
	// In reverse order the counters fall.
	c, err := NewClient(serve(t, "after.prom", "before.prom"), remote.Access{})
	if err != nil {
		t.Fatal(err)
	}
	o := options
	o.Interval = time.Millisecond
	if err := Once(context.Background(), io.Discard, c, o, false); err == nil || !strings.Contains(err.Error(), "restarted") {
		t.Errorf("after a restart: %v", err)
	}
}
