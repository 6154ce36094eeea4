// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/teescope/teescope/internal/lib/clock"
)

// An engine is a database that gets all samples: a single-node VictoriaMetrics, a cluster of one, or a database that runs already and
// has no parts here.
type engine struct {
	parts        []*server // in the order of their start
	query, write string
}

// startEngine starts the engine of the options, or returns nil.
func (o options) startEngine(ctx context.Context, dir string) (*engine, error) {
	switch {
	case o.write != "":
		return &engine{query: o.query, write: o.write}, nil
	case o.cluster != "":
		return o.startCluster(ctx, dir)
	case o.database == "":
		return nil, nil
	}
	s, err := startPart(ctx, "", o.database, dir, "-search.latencyOffset", "0s")
	if err != nil {
		return nil, err
	}
	return &engine{parts: []*server{s}, query: s.url, write: s.url + "/api/v1/write"}, nil
}

// startCluster starts two storage nodes, two inserts behind a balancer, and a select.
func (o options) startCluster(ctx context.Context, dir string) (e *engine, err error) {
	e = &engine{}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.stop())
		}
	}()
	add := func(name, program, data string, args ...string) (*server, error) {
		s, err := startPart(ctx, name, filepath.Join(o.cluster, program), data, args...)
		if err == nil {
			e.parts = append(e.parts, s)
		}
		return s, err
	}
	var toStore, toSelect []string
	for i := range 2 {
		in, out, err := freePort(), freePort(), error(nil)
		toStore, toSelect = append(toStore, in), append(toSelect, out)
		if _, err = add(fmt.Sprintf("vmstorage %d", i+1), "vmstorage", filepath.Join(dir, fmt.Sprint(i)), "-vminsertAddr", in, "-vmselectAddr", out, "-dedup.minScrapeInterval", "1ms"); err != nil {
			return e, err
		}
	}
	replicas := fmt.Sprint(o.replicas)
	var inserts []*url.URL
	for i := range 2 {
		s, err := add(fmt.Sprintf("vminsert %d", i+1), "vminsert", "", "-storageNode", strings.Join(toStore, ","), "-replicationFactor", replicas)
		if err != nil {
			return e, err
		}
		u, err := url.Parse(s.url)
		if err != nil {
			return e, err
		}
		inserts = append(inserts, u)
	}
	s, err := add("vmselect", "vmselect", "", "-storageNode", strings.Join(toSelect, ","), "-replicationFactor", replicas, "-search.latencyOffset", "0s", "-dedup.minScrapeInterval", "1ms",
		"-cacheDataPath", filepath.Join(dir, "cache"))
	if err != nil {
		return e, err
	}
	e.query = s.url + "/select/0/prometheus"
	e.write, err = balancer(inserts)
	e.write += "/insert/0/prometheus/api/v1/write"
	return e, err
}

// balancer passes requests on to each of some servers in turn.
func balancer(to []*url.URL) (string, error) {
	var n atomic.Uint64
	address, err := listen(&httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(to[n.Add(1)%uint64(len(to))]) },
		ErrorLog: log.New(io.Discard, "", 0), // the sender gets 502, and tries again
	})
	return "http://" + address, err
}

// freePort returns a loopback address that is not in use.
func freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err.Error() // the program that gets it states it
	}
	defer l.Close()
	return l.Addr().String()
}

// startPart starts a process of a VictoriaMetrics on a free port and waits until it answers.
func startPart(ctx context.Context, name, binary, dir string, args ...string) (*server, error) {
	address := freePort()
	args = append(args, "-httpListenAddr", address, "-loggerLevel", "WARN")
	if dir != "" {
		args = append(args, "-storageDataPath", dir)
	}
	s := &server{label: name, url: "http://" + address, dir: dir, path: binary, args: args}
	return s, s.begin(ctx)
}

// begin starts the process, or starts it again.
func (s *server) begin(ctx context.Context) error {
	s.cmd = exec.Command(s.path, s.args...) //nolint:gosec // the user names it
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("starting the database: %w", err)
	}
	for until := time.Now().Add(time.Minute); ; {
		if _, status, err := s.get(ctx, "/health"); err == nil && status == http.StatusOK {
			return nil
		}
		if err := clock.Sleep(ctx, 100*time.Millisecond); err != nil || time.Now().After(until) {
			return errors.Join(fmt.Errorf("%s does not answer", s.name()), err, s.stop())
		}
	}
}

// stop stops all parts in the reverse order of their start.
func (e *engine) stop() (err error) {
	for _, s := range slices.Backward(e.parts) {
		err = errors.Join(err, s.stop())
	}
	return err
}

func (e *engine) report(out io.Writer, when string) (err error) {
	for _, s := range e.parts {
		err = errors.Join(err, s.report(out, when))
	}
	return err
}

func (e *engine) cost() (sum cost, err error) {
	for _, s := range e.parts {
		c, wrong := s.cost()
		sum, err = cost{sum.cpu + c.cpu, sum.disk + c.disk}, errors.Join(err, wrong)
	}
	return sum, err
}

// reportKill kills each part once while samples come in, starts it again after a while, and reports what the engine has of the
// samples that the server s has stored at the same time.
func (e *engine) reportKill(ctx context.Context, out io.Writer, s *server, o options) error {
	has := &server{url: e.query}
	for _, i := range []int{1, 3} { // the second storage node and the second insert
		killed := e.parts[i]
		before := time.Now()
		if err := clock.Sleep(ctx, 6*o.interval); err != nil {
			return err
		}
		if err := killed.cmd.Process.Kill(); err != nil {
			return err
		}
		_ = killed.cmd.Wait() // it was killed
		if err := clock.Sleep(ctx, o.kill); err != nil {
			return err
		}
		while, err := has.number(ctx, `count(up{job="teescope",instance=~"node.*"})`)
		fmt.Fprintf(out, "\n%s was killed %v ago: it answers for %.0f agents, error %v\n", killed.name(), o.kill, while, err)
		if err := has.reportPartial(ctx, out); err != nil {
			return err
		}
		if err := s.reportSent(ctx, out); err != nil {
			return err
		}
		if err := killed.begin(ctx); err != nil {
			return err
		}
		if err := clock.Sleep(ctx, o.kill+6*o.interval); err != nil {
			return err
		}
		if err := s.reportSent(ctx, out); err != nil {
			return err
		}
		if err := reportLost(ctx, out, s, has, int(time.Since(before).Seconds())); err != nil {
			return err
		}
	}
	return nil
}

// reportPartial reports what a query says that a part of the engine does not answer, with and without the wish for complete answers.
func (s *server) reportPartial(ctx context.Context, out io.Writer) error {
	for _, deny := range []string{"0", "1"} {
		body, status, err := s.get(ctx, "/api/v1/query?"+url.Values{"query": {"count(up)"}, "nocache": {"1"}, "deny_partial_response": {deny}}.Encode())
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "deny_partial_response=%s: status %d, %.400s\n", deny, status, body)
	}
	return nil
}

// reportSent reports what the server says about its remote write.
func (s *server) reportSent(ctx context.Context, out io.Writer) error {
	body, _, err := s.get(ctx, "/metrics")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(body)) {
		for _, name := range []string{"samples_failed_total", "samples_dropped_total", "samples_retried_total", "samples_pending", "samples_total", "queue_highest_sent_timestamp_seconds"} {
			if strings.HasPrefix(line, "prometheus_remote_storage_"+name+"{") {
				value := line[strings.LastIndexByte(line, ' ')+1:]
				fmt.Fprintf(out, "  %s %s", name, cmp.Or(value, "\n"))
			}
		}
	}
	return nil
}

// reportLost compares the number of samples of the last seconds in the server own with those of a server that queries an engine.
func reportLost(ctx context.Context, out io.Writer, own, elsewhere *server, seconds int) error {
	at := fmt.Sprint(time.Now().Unix() - 10) // what is later may be on its way
	for _, query := range []string{
		fmt.Sprintf(`sum(count_over_time(up{job="teescope",instance=~"node.*"}[%ds]))`, seconds),
		fmt.Sprintf(`sum(count_over_time(teescope_syscalls_total{job="teescope",syscall="read"}[%ds]))`, seconds),
	} {
		var n [2]float64
		for i, of := range []*server{own, elsewhere} {
			var err error
			if n[i], err = of.numberAt(ctx, query, at); err != nil {
				return err
			}
		}
		fmt.Fprintf(out, "%s: the server has %.0f, the engine %.0f, which is %.0f less (%.2f %%)\n", query, n[0], n[1], n[0]-n[1], 100*(n[0]-n[1])/n[0])
	}
	return nil
}
