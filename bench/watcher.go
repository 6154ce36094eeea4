// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"

	"github.com/teescope/teescope/internal/lib/clock"
)

// A watcher is a running mode.
type watcher struct {
	parts   []part
	counted counter // nil when the mode counts nothing
	stop    func()
}

// A counter returns how many getppid calls of a process were counted. It is called once, at the end. Some tools report
// only when they end, and the counter then stops them. Says is the mode's own statement of its precision; it is empty
// for most.
type counter func(ctx context.Context, of subject) (n float64, says string, err error)

// subject is the process whose calls are counted.
type subject struct {
	name string // of the program
	pid  int
}

// part is one process of a watcher, with its children.
type part struct {
	name string
	*child
	url string // of its metrics; empty when it has none
}

// none returns the watcher of a mode without a process.
func none(stop func()) *watcher { return &watcher{stop: stop} }

// use is what a watcher used during one window. Values that it does not have, such as maps, are absent.
type use struct {
	cpu, resident map[string]float64 // seconds of CPU time per second, and bytes, by part
	maps          []float64          // bytes of BPF maps; empty or one
	series        []float64          // samples of one scrape; empty or one
	scrape        []float64          // seconds of one scrape of all parts; empty or one
}

// meter measures a watcher from its creation until read.
type meter struct {
	w     *watcher
	begin time.Time
	cpu   map[string]float64
}

func (w *watcher) meter() (*meter, error) {
	cpu, err := w.cpu()
	return &meter{w: w, begin: time.Now(), cpu: cpu}, err
}

func (w *watcher) cpu() (map[string]float64, error) {
	all := map[string]float64{}
	for _, p := range w.parts {
		seconds, err := p.cpu()
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", p.name, err, p.output())
		}
		all[p.name] = seconds
	}
	return all, nil
}

func (m *meter) read(ctx context.Context) (use, error) {
	u := use{cpu: map[string]float64{}, resident: map[string]float64{}}
	after, err := m.w.cpu()
	if err != nil {
		return u, err
	}
	seconds := time.Since(m.begin).Seconds()
	var pids []int
	for _, p := range m.w.parts {
		u.cpu[p.name] = (after[p.name] - m.cpu[p.name]) / seconds
		if u.resident[p.name], err = p.resident(); err != nil {
			return u, err
		}
		pids = append(pids, p.pids()...)
	}
	if bytes := mapMemory(pids); bytes > 0 {
		u.maps = []float64{bytes}
	}
	return u, m.w.scrape(ctx, &u)
}

// scrape scrapes each part that has metrics once, as a Prometheus server does.
func (w *watcher) scrape(ctx context.Context, u *use) error {
	var count, seconds float64
	for _, p := range w.parts {
		if p.url == "" {
			continue
		}
		begin := time.Now()
		body, err := fetch(ctx, p.url)
		if err != nil {
			return fmt.Errorf("scraping %s: %w", p.name, err)
		}
		seconds += time.Since(begin).Seconds()
		count += float64(series(body))
	}
	if count > 0 {
		u.series, u.scrape = []float64{count}, []float64{seconds}
	}
	return nil
}

// scraped scrapes a watcher that includes no Prometheus server of its own.
func (w *watcher) scraped(ctx context.Context, each time.Duration) *watcher {
	ctx, cancel := context.WithCancel(ctx)
	done, stop := make(chan struct{}), w.stop
	go func() {
		defer close(done)
		for clock.Sleep(ctx, each) == nil {
			// A failed scrape shows in the watcher's own cost. The load continues.
			_ = w.scrape(ctx, &use{})
		}
	}()
	w.stop = func() { cancel(); <-done; stop() }
	return w
}

// mapMemory returns the kernel memory of eBPF maps that processes hold open, directly or through open programs. Each
// map counts once. The kernel reports the size as memlock in the fdinfo of a map.
func mapMemory(pids []int) float64 {
	ids := map[ebpf.MapID]bool{}
	for _, pid := range pids {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
		for _, file := range files {
			data, _ := os.ReadFile(file) // a file that was closed meanwhile holds nothing
			if id, ok := fdinfo(data, "map_id"); ok {
				ids[ebpf.MapID(id)] = true
			}
			if id, ok := fdinfo(data, "prog_id"); ok {
				addMaps(ids, ebpf.ProgramID(id))
			}
		}
	}
	var total float64
	for id := range ids {
		if bytes, err := mapBytes(id); err == nil {
			total += bytes
		}
	}
	return total
}

func addMaps(ids map[ebpf.MapID]bool, id ebpf.ProgramID) {
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return
	}
	defer func() { _ = p.Close() }()
	info, err := p.Info()
	if err != nil {
		return
	}
	used, _ := info.MapIDs()
	for _, id := range used {
		ids[id] = true
	}
}

func mapBytes(id ebpf.MapID) (float64, error) {
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		return 0, err
	}
	defer func() { _ = m.Close() }()
	info, err := m.Info()
	if err != nil {
		return 0, err
	}
	bytes, ok := info.Memlock()
	if !ok {
		return 0, errors.New("the kernel does not report the size of a map")
	}
	return float64(bytes), nil
}

// fdinfo returns a number from /proc/PID/fdinfo/FD.
func fdinfo(data []byte, key string) (uint32, bool) {
	for line := range strings.Lines(string(data)) {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name != key {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32)
		return uint32(n), err == nil
	}
	return 0, false
}
