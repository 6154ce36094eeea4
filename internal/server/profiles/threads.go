// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis/codefind"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read"
)

const (
	maxBuckets = 240    // of an answer
	maxThreads = 60     // of an answer
	maxSeen    = 10_000 // threads that are added up
	maxStates  = 24
	maxNames   = 1024 // of states that are added up
	maxState   = 60   // bytes of the name of a state
	// otherStates are those beyond maxStates.
	otherStates = "other"
	// leastBucket is the bucket of time that the agent counts samples in.
	leastBucket = 500 * time.Millisecond
)

// threadsAnswer is the answer to GET /api/profiles/threads: what threads did over time.
type threadsAnswer struct {
	Begin   float64      `json:"begin"` // seconds since 1970
	Width   float64      `json:"width"` // seconds of a bucket
	Buckets int          `json:"buckets"`
	States  []string     `json:"states"`
	Threads []*threadRow `json:"threads"` // those with the most time
	LeftOut int          `json:"left_out"`
	Untimed int          `json:"untimed"` // profiles whose samples have no times
	// Unit is that of the values: nanoseconds, or count for events without a time. It is empty without values.
	Unit string `json:"unit"`
}

// threadRow is one thread and what it did.
type threadRow struct {
	PID     string     `json:"pid,omitempty"`
	TID     string     `json:"tid"`
	Process string     `json:"process,omitempty"`
	Name    string     `json:"thread,omitempty"`
	Pieces  [][3]int64 `json:"pieces"` // bucket, state and value, in ascending order

	total int64
	cells map[[2]int]int64 // by bucket and state
}

// serveThreads answers with the states of threads over time. The parameters are start, end, workload, label, event and value.
func (s *Store) serveThreads(w http.ResponseWriter, r *http.Request) {
	a, err := readQuery(r.URL.Query(), "")
	var t *threadsAnswer
	if !s.inTurn(w, r, err, func(ctx context.Context) (err error) {
		t, err = s.threads(ctx, a)
		if errors.Is(err, errNone) {
			t, err = newTimeline(a.start, a.start).answer(), nil
		}
		return err
	}) {
		return
	}
	jsonapi.Answer(w, t)
}

func (s *Store) threads(ctx context.Context, a query) (*threadsAnswer, error) {
	entries := s.between(a.event, a.start, a.end)
	if len(entries) == 0 {
		return nil, errNone
	}
	if len(entries) > maxRead {
		return nil, fmt.Errorf("the time range has %d profiles; the maximum for threads is %d: use a shorter range: %w", len(entries), maxRead, profile.ErrLimit)
	}
	// The columns are of the time in which the workload has samples.
	entries = slices.DeleteFunc(entries, func(e entry) bool {
		return slices.ContainsFunc(a.labels, func(l profile.Label) bool { return l.Key == profile.Workload && !s.workloads(e)[l.Value] })
	})
	if len(entries) == 0 {
		return nil, errNone
	}
	begin, end := a.start, a.end
	if first := entries[0].begin; first.After(begin) {
		begin = first
	}
	if last := slices.MaxFunc(entries, func(x, y entry) int { return x.end.Compare(y.end) }).end; last.Before(end) {
		end = last
	}
	l := newTimeline(begin, end)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := read.Open(filepath.Join(s.opts.Dir, e.name()), read.Options{Times: true})
		if err != nil {
			continue // it was removed meanwhile, or the disk has lost it
		}
		if err := a.show(p); err != nil {
			return nil, err
		}
		l.add(p, a.labels)
	}
	return l.answer(), nil
}

// timeline adds up what threads did.
type timeline struct {
	begin   time.Time
	width   time.Duration
	buckets int
	states  []string
	numbers map[string]int           // of states
	unit    string                   // of the values; empty until there are some
	threads map[[2]string]*threadRow // by the IDs of process and thread
	missing map[[2]string]bool
	untimed int
}

func newTimeline(begin, end time.Time) *timeline {
	width := max(leastBucket, end.Sub(begin)/maxBuckets)
	return &timeline{
		begin: begin, width: width, buckets: min(maxBuckets, int((end.Sub(begin)+width-1)/width)),
		numbers: map[string]int{}, threads: map[[2]string]*threadRow{}, missing: map[[2]string]bool{},
	}
}

// add adds the samples of a profile, unless they have another unit than those before.
func (l *timeline) add(p *profile.Profile, labels []profile.Label) {
	unit := p.Values[p.Main].Unit
	if l.unit == "" {
		l.unit = unit
	}
	if l.unit != unit {
		return
	}
	timed, event := false, codefind.EventOf(p)
	for i := range p.Samples {
		one := &p.Samples[i]
		timed = timed || one.At > 0
		if one.At <= 0 || !matches(p, one, labels) {
			continue
		}
		at := time.Unix(0, one.At).Sub(l.begin)
		if bucket := int(at / l.width); at >= 0 && bucket < l.buckets {
			l.put(p, one, bucket, event)
		}
	}
	if !timed {
		l.untimed++
	}
}

func (l *timeline) put(p *profile.Profile, one *profile.Sample, bucket int, event codelink.Event) {
	key := [2]string{p.Label(one, profile.PID), p.Label(one, profile.Thread)}
	t := l.threads[key]
	if t == nil {
		if len(l.threads) >= maxSeen {
			if len(l.missing) < maxSeen {
				l.missing[key] = true
			}
			return
		}
		t = &threadRow{PID: key[0], TID: key[1], Process: p.Label(one, profile.Process), Name: p.Label(one, "thread"), cells: map[[2]int]int64{}}
		l.threads[key] = t
	}
	at, left := l.state(stateOf(p, one, event)), one.Values[p.Main]
	t.total += left
	// A wait or a call is known at its end. What is longer than its bucket was before it, and may be before the first one.
	for ended := event != codelink.CPU && l.unit != counted; ended && bucket >= 0 && left > int64(l.width); bucket-- {
		t.cells[[2]int{bucket, at}] += int64(l.width)
		left -= int64(l.width)
	}
	if bucket >= 0 {
		t.cells[[2]int{bucket, at}] += left
	}
}

// counted is the unit of events without a time.
const counted = "count"

// state returns the number of a state. Those beyond maxNames are one.
func (l *timeline) state(name string) int {
	at, known := l.numbers[name]
	if !known {
		if len(l.states) >= maxNames && name != otherStates {
			return l.state(otherStates)
		}
		at = len(l.states)
		l.numbers[name] = at
		l.states = append(l.states, name)
	}
	return at
}

// stateOf returns what a thread did at a sample: of calls and interrupts, which one it was.
func stateOf(p *profile.Profile, s *profile.Sample, event codelink.Event) string {
	innermost := p.Frames[s.Stack[0]]
	if reason := p.Label(s, profile.Reason); reason != "" {
		return "waits: " + reason
	}
	if event != codelink.CPU && event != codelink.Waits {
		return text.Short(innermost.Name(), maxState)
	}
	if p.Label(s, profile.Enclave) == "inside" {
		return "in enclave"
	}
	if !innermost.Kernel {
		return "user"
	}
	for _, f := range s.Stack {
		for _, entry := range []string{"entry_SYSCALL", "do_syscall_64", "__x64_sys_"} {
			if strings.HasPrefix(p.Frames[f].Function, entry) {
				return "system call"
			}
		}
	}
	return "kernel"
}

// shorten leaves the states with the largest values of some threads. The others become one.
func (l *timeline) shorten(threads []*threadRow) {
	if len(l.states) <= maxStates {
		return
	}
	sums, order := make([]int64, len(l.states)), make([]int, len(l.states))
	for _, t := range threads {
		for cell, v := range t.cells {
			sums[cell[1]] += v
		}
	}
	for i, name := range l.states {
		order[i] = i
		if name == otherStates {
			sums[i] = -1
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sums[b], sums[a]) })
	kept := slices.Sorted(slices.Values(order[:maxStates-1]))
	states, becomes := make([]string, 0, maxStates), make([]int, len(l.states))
	for i := range becomes {
		becomes[i] = maxStates - 1
	}
	for _, at := range kept {
		becomes[at] = len(states)
		states = append(states, l.states[at])
	}
	states = append(states, otherStates)
	l.states = states
	for _, t := range threads {
		cells := make(map[[2]int]int64, len(t.cells))
		for cell, v := range t.cells {
			cells[[2]int{cell[0], becomes[cell[1]]}] += v
		}
		t.cells = cells
	}
}

func (l *timeline) answer() *threadsAnswer {
	all := slices.SortedFunc(maps.Values(l.threads), func(a, b *threadRow) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID))
	})
	shown := append([]*threadRow{}, all[:min(len(all), maxThreads)]...)
	l.shorten(shown)
	for _, t := range shown {
		t.Pieces = make([][3]int64, 0, len(t.cells))
		for _, cell := range slices.SortedFunc(maps.Keys(t.cells), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
			t.Pieces = append(t.Pieces, [3]int64{int64(cell[0]), int64(cell[1]), t.cells[cell]})
		}
	}
	if l.states == nil {
		l.states = []string{}
	}
	return &threadsAnswer{
		Begin: float64(l.begin.UnixMilli()) / 1e3, Width: l.width.Seconds(), Buckets: l.buckets, States: l.states,
		Threads: shown, LeftOut: len(all) - len(shown) + len(l.missing), Untimed: l.untimed, Unit: l.unit,
	}
}
