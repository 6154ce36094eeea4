// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/teescope/teescope/internal/lib/clock"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// server is the measured process.
type server struct {
	cmd   *exec.Cmd
	url   string
	dir   string
	label string // the name of the program, unless it is set
	path  string // of the program, and its arguments, to start it again
	args  []string
}

func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return s.cmd.Wait()
}

// metric reads one of the server's own metrics.
func (s *server) metric(ctx context.Context, name string) (float64, error) {
	body, _, err := s.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(strings.NewReader(string(body))); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(rest, 64)
		}
	}
	return 0, fmt.Errorf("the server has no metric %s", name)
}

func (s *server) get(ctx context.Context, path string) ([]byte, int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return nil, 0, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return body, answer.StatusCode, err
}

// reportIngest reports the cost of scraping alone, for the server and for the processes that get its samples.
func (s *server) reportIngest(ctx context.Context, out io.Writer, d time.Duration, measured ...*server) error {
	const appended = `prometheus_tsdb_head_samples_appended_total{type="float"}`
	before, err := s.metric(ctx, appended)
	if err != nil {
		return err
	}
	const analysing = "teescope_analysis_cpu_seconds_total"
	judging, err := s.metric(ctx, analysing)
	if err != nil {
		return err
	}
	costs := make([]cost, len(measured))
	for i, m := range measured {
		if costs[i], err = m.cost(); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := clock.Sleep(ctx, d); err != nil {
		return err
	}
	after, err := s.metric(ctx, appended)
	if err != nil {
		return err
	}
	series, err := s.metric(ctx, "prometheus_tsdb_head_series")
	if err != nil {
		return err
	}
	judged, err := s.metric(ctx, analysing)
	if err != nil {
		return err
	}
	samples, took := after-before, time.Since(began).Seconds()
	fmt.Fprintf(out, "no queries, %v: %.0f series, %.0f samples/s, analysis %.1f %% of a core, load of the machine %s\n",
		d, series, samples/took, 100*(judged-judging)/took, load())
	for i, m := range measured {
		now, err := m.cost()
		if err != nil {
			return err
		}
		cpu := (now.cpu - costs[i].cpu).Seconds()
		fmt.Fprintf(out, "%s: %.1f %% of a core, %.2f us/sample, %.2f B/sample of disk (log and recent chunks)\n",
			m.name(), 100*cpu/took, 1e6*cpu/samples, float64(now.disk-costs[i].disk)/samples)
		if err := m.report(out, "before the queries"); err != nil {
			return err
		}
	}
	return nil
}

// cost is what a server has used since its start.
type cost struct {
	cpu  time.Duration
	disk int64 // bytes
}

func (s *server) cost() (cost, error) {
	cpu, err := s.cpu()
	return cost{cpu, s.disk()}, err
}

// name returns the name of the program.
func (s *server) name() string { return cmp.Or(s.label, filepath.Base(s.cmd.Path)) }

// report reports memory.
func (s *server) report(out io.Writer, when string) error {
	memory, ok := s.process().Memory()
	if !ok {
		return errors.New("reading the memory of the server: it has ended")
	}
	_, err := fmt.Fprintf(out, "%s, %s: resident %d kB (of files %d kB), at most %d kB\n", s.name(), when, memory.Resident/1024, memory.Files/1024, memory.Peak/1024)
	return err
}

func (s *server) process() hostfs.Process { return hostfs.At("/proc").Process(s.cmd.Process.Pid) }

// cpu returns the CPU time that the server has used.
func (s *server) cpu() (time.Duration, error) {
	stat, err := s.process().Stat()
	return stat.CPU, err
}

// disk returns the size of the database in bytes.
func (s *server) disk() int64 {
	total := int64(0)
	if s.dir == "" {
		return 0
	}
	_ = filepath.WalkDir(s.dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // removed meanwhile
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return nil
	})
	return total
}

// queryResult is the result of one query.
type queryResult struct {
	query string
	took  time.Duration
	bytes int
}

// reportQueries runs each query of the page for the time since the start, one after the other.
func (s *server) reportQueries(ctx context.Context, out io.Writer, queries []string, o options) error {
	var all []queryResult
	refused := map[string]int{}
	began := time.Now()
	for range o.rounds {
		for _, q := range queries {
			start := time.Now()
			size, reason, err := s.ask(ctx, q)
			if err != nil {
				return err
			}
			if reason != "" {
				refused[reason]++
			}
			all = append(all, queryResult{query: q, took: time.Since(start), bytes: size})
		}
	}
	slices.SortFunc(all, func(a, b queryResult) int { return int(a.took - b.took) })
	at := func(share float64) time.Duration { return all[min(len(all)-1, int(share*float64(len(all))))].took }
	fmt.Fprintf(out, "%d queries of the page, n=%d in %v, 15 minutes at 5 s: p50 %v, p90 %v, p99 %v, most %v\n",
		len(queries), len(all), time.Since(began).Round(time.Second), at(0.5), at(0.9), at(0.99), at(1))
	for _, a := range all[max(0, len(all)-3):] {
		fmt.Fprintf(out, "  %v, %d bytes: %s\n", a.took, a.bytes, a.query)
	}
	tell(out, refused)
	return s.reportConcurrent(ctx, out, all[len(all)-1].query, o.concurrent)
}

func tell(out io.Writer, refused map[string]int) {
	for reason, n := range refused {
		fmt.Fprintf(out, "  refused %d times: %s\n", n, reason)
	}
}

// reportConcurrent runs the most expensive query many times concurrently.
func (s *server) reportConcurrent(ctx context.Context, out io.Writer, query string, n int) error {
	type answer struct {
		refused string
		err     error
	}
	answers := make(chan answer, n)
	began := time.Now()
	for range n {
		go func() {
			_, refused, err := s.ask(ctx, query)
			answers <- answer{refused, err}
		}()
	}
	refused := map[string]int{}
	answered := 0
	for range n {
		switch a := <-answers; {
		case a.err != nil:
			return a.err
		case a.refused != "":
			refused[a.refused]++
		default:
			answered++
		}
	}
	fmt.Fprintf(out, "the costliest %d times at once: %d answered, all over after %v\n", n, answered, time.Since(began).Round(time.Millisecond))
	tell(out, refused)
	return nil
}

// ask runs one query for the last 15 minutes. It returns the size of the answer, or the reason why there is none.
func (s *server) ask(ctx context.Context, query string) (size int, refused string, err error) {
	end := time.Now().Unix()
	body, status, err := s.get(ctx, "/api/v1/query_range?"+url.Values{
		"query": {query}, "start": {strconv.FormatInt(end-900, 10)}, "end": {strconv.FormatInt(end, 10)}, "step": {"5"},
	}.Encode())
	if err != nil || status == http.StatusOK {
		return len(body), "", err
	}
	var answer struct{ Error string }
	_ = json.Unmarshal(body, &answer)
	return len(body), fmt.Sprintf("%d %s", status, answer.Error), nil
}
