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

	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read"
)

const (
	maxBuckets = 240    // of an answer
	maxThreads = 60     // of an answer
	maxSeen    = 10_000 // threads that are added up
	maxStates  = 24
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
}

// threadRow is one thread and what it did.
type threadRow struct {
	PID     string     `json:"pid,omitempty"`
	TID     string     `json:"tid"`
	Process string     `json:"process,omitempty"`
	Name    string     `json:"thread,omitempty"`
	Pieces  [][3]int64 `json:"pieces"` // bucket, state and nanoseconds, in ascending order

	total int64
	cells map[[2]int]int64 // by bucket and state
}

// serveThreads answers with the states of threads over time. The parameters are start, end, workload and label.
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
	threads map[[2]string]*threadRow // by the IDs of process and thread
	missing map[[2]string]bool
	untimed int
}

func newTimeline(begin, end time.Time) *timeline {
	width := max(leastBucket, end.Sub(begin)/maxBuckets)
	return &timeline{
		begin: begin, width: width, buckets: min(maxBuckets, int((end.Sub(begin)+width-1)/width)),
		threads: map[[2]string]*threadRow{}, missing: map[[2]string]bool{},
	}
}

func (l *timeline) add(p *profile.Profile, labels []profile.Label) {
	if _, is := p.Nanoseconds(); !is {
		return
	}
	timed := false
	for i := range p.Samples {
		one := &p.Samples[i]
		timed = timed || one.At > 0
		if one.At <= 0 || !matches(p, one, labels) {
			continue
		}
		at := time.Unix(0, one.At).Sub(l.begin)
		if bucket := int(at / l.width); at >= 0 && bucket < l.buckets {
			l.put(p, one, bucket)
		}
	}
	if !timed {
		l.untimed++
	}
}

func (l *timeline) put(p *profile.Profile, one *profile.Sample, bucket int) {
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
	state, waits := stateOf(p, one)
	at, left := l.state(state), one.Values[p.Main]
	t.total += left
	// A wait is known at its end. What is longer than its bucket was before it, and may be before the first one.
	for ; waits && bucket >= 0 && left > int64(l.width); bucket-- {
		t.cells[[2]int{bucket, at}] += int64(l.width)
		left -= int64(l.width)
	}
	if bucket >= 0 {
		t.cells[[2]int{bucket, at}] += left
	}
}

// state returns the number of a state. Those beyond the limit are one, which has a name of its own.
func (l *timeline) state(name string) int {
	if at := slices.Index(l.states, name); at >= 0 {
		return at
	}
	switch len(l.states) {
	case maxStates:
		return maxStates - 1
	case maxStates - 1:
		name = otherStates
	}
	l.states = append(l.states, name)
	return len(l.states) - 1
}

// stateOf returns what a thread did at a sample, and whether it waited.
func stateOf(p *profile.Profile, s *profile.Sample) (state string, waits bool) {
	if reason := p.Label(s, profile.Reason); reason != "" {
		return "waits: " + reason, true
	}
	if p.Label(s, profile.Enclave) == "inside" {
		return "in enclave", false
	}
	if !p.Frames[s.Stack[0]].Kernel {
		return "user", false
	}
	for _, f := range s.Stack {
		for _, entry := range []string{"entry_SYSCALL", "do_syscall_64", "__x64_sys_"} {
			if strings.HasPrefix(p.Frames[f].Function, entry) {
				return "system call", false
			}
		}
	}
	return "kernel", false
}

func (l *timeline) answer() *threadsAnswer {
	all := slices.SortedFunc(maps.Values(l.threads), func(a, b *threadRow) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID))
	})
	shown := append([]*threadRow{}, all[:min(len(all), maxThreads)]...)
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
		Threads: shown, LeftOut: len(all) - len(shown) + len(l.missing), Untimed: l.untimed,
	}
}
