// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// mostResident limits the resident memory of `up` with these targets. It had 494 MiB in one run on two CPUs, and 612 MiB on a busy machine. The soft
// limit of the server's heap is 512 MiB. At the limit the garbage collector runs more often.
const mostResident = 640 * mib

// wildTarget sends too much, and is down for this reason.
type wildTarget struct {
	handler http.HandlerFunc
	reason  string
}

// body sends a body that is built once, because the test measures the scraper.
func body(make func(io.Writer)) http.HandlerFunc {
	var b bytes.Buffer
	make(&b)
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(b.Bytes()) }
}

func wildSeries(w io.Writer, prefix string, n int) {
	for i := range n {
		fmt.Fprintf(w, "wild{id=\"%s%d\"} 1\n", prefix, i)
	}
}

// bomb sends a mebibyte many times, compressed to almost nothing.
func bomb(part []byte, times int) http.HandlerFunc {
	send := body(func(w io.Writer) {
		z := gzip.NewWriter(w)
		defer z.Close()
		for range times {
			_, _ = z.Write(part)
		}
	})
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		send(w, r)
	}
}

func wildTargets() map[string]wildTarget {
	comment := append(bytes.Repeat([]byte("#"), mib-1), '\n')
	var asked atomic.Int64
	return map[string]wildTarget{
		"large": {func(w http.ResponseWriter, _ *http.Request) {
			for range 100 {
				if _, err := w.Write(comment); err != nil {
					return
				}
			}
		}, "body size limit exceeded"},
		"bomb":    {bomb(bytes.Repeat([]byte("\n"), mib), 100), "body size limit exceeded"},
		"million": {body(func(w io.Writer) { wildSeries(w, "", 1_000_000) }), "body size limit exceeded"},
		"many":    {body(func(w io.Writer) { wildSeries(w, "", 100_001) }), "sample limit exceeded"},
		"changing": {func(w http.ResponseWriter, _ *http.Request) { // new series each time
			wildSeries(w, fmt.Sprint(asked.Add(1), "-"), 60_000)
		}, "new series within 2h0m0s: check whether a label of the target contains times, IDs or addresses"},
	}
}

// failures returns why the last scrapes of the targets failed, by job; "" means success.
func failures(base string) (map[string]string, error) { return failuresBy(base, "job") }

// failuresBy returns the same by another label.
func failuresBy(base, label string) (map[string]string, error) {
	text, err := get(base + "/api/v1/targets")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			ActiveTargets []struct {
				Labels    map[string]string
				LastError string
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, target := range answer.Data.ActiveTargets {
		all[target.Labels[label]] = target.LastError
	}
	return all, nil
}

// mostEver returns the peak resident memory of the process and its children in bytes, as the kernel reports it.
func (p *process) mostEver(t *testing.T) float64 {
	t.Helper()
	sum := 0.0
	for _, pid := range append(childrenOf(t, p.cmd.Process.Pid), p.cmd.Process.Pid) {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(data), "\nVmHWM:")
		var kib float64
		if _, err := fmt.Sscan(rest, &kib); err != nil {
			t.Fatalf("reading VmHWM: %v", err)
		}
		sum += kib * 1024
	}
	return sum
}

// Targets that send too much in size or number cost `up` a bounded amount of memory. Each is down with a reason, and
// the others are still scraped. On a busy machine the collector of garbage is late, so the least of three runs counts.
func TestWildTargetsCostBoundedMemory(t *testing.T) {
	args := []string{"--interval", "2s"}
	serve := func(name string, handler http.HandlerFunc) {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		args = append(args, "--scrape", name+"="+server.URL)
	}
	all := wildTargets()
	for name, target := range all {
		serve(name, target.handler)
	}
	serve("tame", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "tame 1") })
	inOneOf(t, 3, func() error {
		s := start(t, "up", append(args, "--data-dir", t.TempDir())...)
		defer s.stop(t)
		most := underWildTargets(t, s, all)
		t.Logf("at most %.0f MiB in memory, now %.0f MiB", most/mib, s.resident(t)/mib)
		if most > mostResident {
			return fmt.Errorf("it had %.0f MiB in memory", most/mib)
		}
		return nil
	})
}

// underWildTargets waits for several scrapes and returns the peak of the memory in bytes.
func underWildTargets(t *testing.T, s *teescope, all map[string]wildTarget) float64 {
	t.Helper()
	base, began := "http://"+s.addr, time.Now()
	for name, target := range all {
		eventually(t, 5*testLimit, name+" to be down", func() error {
			said, err := failures(base)
			if err == nil && !strings.Contains(said[name], target.reason) {
				err = fmt.Errorf("it failed with %q, want %q", said[name], target.reason)
			}
			return err
		})
	}
	time.Sleep(time.Until(began.Add(12 * time.Second))) // enough for the memory of several scrapes to accumulate
	for _, job := range []string{"tame", "teescope"} {
		// Some scrapes, half a second apart, may be late on a busy machine.
		eventually(t, testLimit, job+" to be scraped for 8 s", func() error {
			least, err := query(base, fmt.Sprintf("min by (job) (min_over_time(up{job=%q}[8s]))", job), time.Now())
			if err == nil && least[fmt.Sprintf("{job=%q}", job)] != 1 {
				err = fmt.Errorf("up is %v", least)
			}
			return err
		})
	}
	return s.mostEver(t)
}
