// SPDX-License-Identifier: Apache-2.0

// Package profiles keeps the profiles that the agent of this machine makes, in files beside the database, for as long as the
// database keeps samples, and answers queries by time, workload and label.
//
// A file is a profile in pprof's format, which other programs can read too. The package takes no samples, and reads no other
// files.
package profiles

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/analysis/codefind"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/lib/atomicfile"
	"github.com/teescope/teescope/internal/lib/clientname"
	"github.com/teescope/teescope/internal/lib/service"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read"
)

const (
	// every is the time between two requests for new profiles. The agent makes one a minute.
	every = 5 * time.Second
	// mostAtOnce is how many profiles are fetched without a pause.
	mostAtOnce = 32
	// part is the share of retention.size that profiles may take, and usualSize is their limit without one.
	part      = 10
	usualSize = 200 << 20
	maxFiles  = 1 << 17 // of the directory: 90 days
	suffix    = ".pb.gz"
)

// Options configure a Store.
type Options struct {
	Dir string // is made when it is needed first
	// Next returns the next profile after the named one, and its name, or no data if there is none.
	Next          func(ctx context.Context, after string) (data []byte, name string, err error)
	RetentionTime time.Duration // how long profiles are kept
	RetentionSize int64         // bytes of the whole database; 0 is unlimited
	Instance      string        // of this machine, as the label of its series
	Log           *slog.Logger
}

// entry is a file.
type entry struct {
	begin, end time.Time
	event      codelink.Event // that the samples are of
	size       int64
}

// name returns the name of the file: the times in milliseconds, and the event unless it is CPU time.
func (e entry) name() string {
	name := strconv.FormatInt(e.begin.UnixMilli(), 10) + "-" + strconv.FormatInt(e.end.UnixMilli(), 10)
	if e.event != codelink.CPU {
		name += "-" + string(e.event)
	}
	return name + suffix
}

// Store keeps profiles. It is a service, and the handler of /api/profiles and below.
type Store struct {
	opts    Options
	most    int64 // bytes
	routes  *http.ServeMux
	queries chan struct{}      // has one place: a query takes much memory
	uploads *clientname.Places // of files that are opened
	turns   *clientname.Places // one, of requests that wait for queries
	answer  answered           // used only in that place of queries

	mu      sync.Mutex                // protects the following
	entries []entry                   // by their beginnings
	known   map[entry]map[string]bool // the workloads of a few of them
}

// New returns a store that has read nothing yet.
func New(o Options) *Store {
	s := &Store{opts: o, most: usualSize, queries: make(chan struct{}, 1), uploads: clientname.NewPlaces(maxUploads, maxOfClient), turns: clientname.NewPlaces(1, 1), known: make(map[entry]map[string]bool)}
	if o.RetentionSize > 0 {
		s.most = o.RetentionSize / part
	}
	s.routes = s.newRoutes()
	return s
}

// Name implements service.Service.
func (*Store) Name() string { return "profiles" }

// Init implements service.Initializer. It finds the files of earlier runs, and removes those that were not finished.
// A directory that cannot be read does not stop the program.
func (s *Store) Init(context.Context) error {
	dir, err := os.Open(s.opts.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		s.opts.Log.Error("reading the kept profiles failed", "err", err)
		return nil
	}
	defer dir.Close()
	files, err := dir.ReadDir(maxFiles)
	if err != nil && !errors.Is(err, io.EOF) { // it is empty
		s.opts.Log.Error("reading the kept profiles failed", "err", err)
	}
	for _, f := range files {
		if name, is := strings.CutSuffix(f.Name(), atomicfile.Suffix); is {
			if _, ours := parse(name); ours {
				if err := os.Remove(filepath.Join(s.opts.Dir, f.Name())); err != nil {
					s.opts.Log.Warn("removing an unfinished profile", "err", err)
				}
			}
			continue
		}
		info, err := f.Info()
		if e, ok := parse(f.Name()); ok && err == nil && info.Mode().IsRegular() {
			e.size = info.Size()
			s.entries = append(s.entries, e)
		}
	}
	slices.SortFunc(s.entries, byBegin)
	return nil
}

func byBegin(a, b entry) int {
	return cmp.Or(a.begin.Compare(b.begin), a.end.Compare(b.end), cmp.Compare(a.event, b.event))
}

// parse reads the name of a file.
func parse(name string) (e entry, ok bool) {
	stem, is := strings.CutSuffix(name, suffix)
	first, rest, both := strings.Cut(stem, "-")
	last, event, named := strings.Cut(rest, "-")
	if !named {
		event = string(codelink.CPU)
	}
	begin, err := strconv.ParseInt(first, 10, 64)
	end, err2 := strconv.ParseInt(last, 10, 64)
	e = entry{begin: time.UnixMilli(begin), end: time.UnixMilli(end), event: codelink.Event(event)}
	return e, is && both && slices.Contains(codelink.Events(), e.event) && err == nil && err2 == nil && begin > 0 && end >= begin && e.name() == name
}

// Run implements service.Runner. An agent that does not answer is asked again: it may have been started again.
func (s *Store) Run(ctx context.Context) error {
	after, failed := "", ""
	service.Every(ctx, every, func() {
		next, err := s.fetch(ctx, after)
		after = next
		if err != nil && ctx.Err() == nil && err.Error() != failed {
			failed = err.Error()
			s.opts.Log.Warn("keeping profiles", "err", err) // once for each reason
		}
		s.prune(time.Now())
	})
	return nil
}

// fetch stores the profiles after the named one, and returns the name of the last.
func (s *Store) fetch(ctx context.Context, after string) (string, error) {
	for range mostAtOnce {
		data, name, err := s.opts.Next(ctx, after)
		if err != nil || len(data) == 0 {
			return after, err
		}
		after = name // one that cannot be stored is not asked for again
		if err := s.add(data); err != nil {
			return after, err
		}
	}
	return after, nil
}

// add stores a profile. After a restart, the agent may return a profile that is stored already. It gets the same file
// name.
func (s *Store) add(data []byte) error {
	p, err := read.Read(bytes.NewReader(data), read.Options{}, profile.DefaultLimits())
	if err != nil {
		return fmt.Errorf("reading a profile of the agent: %w", err)
	}
	if p.Began.IsZero() {
		return errors.New("reading a profile of the agent: it has no time")
	}
	e := entry{p.Began, p.Began.Add(p.Lasted), codefind.EventOf(p), int64(len(data))}
	e, _ = parse(e.name()) // in milliseconds
	e.size = int64(len(data))
	if err := os.MkdirAll(s.opts.Dir, 0o700); err != nil {
		return fmt.Errorf("keeping a profile: %w", err)
	}
	if err := atomicfile.Write(filepath.Join(s.opts.Dir, e.name()), data, 0o600); err != nil {
		return fmt.Errorf("keeping a profile: %w", err)
	}
	s.know(e, p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, found := slices.BinarySearchFunc(s.entries, e, byBegin); !found {
		s.entries = slices.Insert(s.entries, at, e)
	}
	return nil
}

// prune removes the profiles that are too old, and the oldest ones while all together are too large.
func (s *Store) prune(now time.Time) {
	s.mu.Lock()
	var sum int64
	for _, e := range s.entries {
		sum += e.size
	}
	var gone []entry
	for len(s.entries) > 0 && (s.entries[0].end.Before(now.Add(-s.opts.RetentionTime)) || sum > s.most) {
		gone = append(gone, s.entries[0])
		sum -= s.entries[0].size
		s.entries = s.entries[1:]
	}
	s.mu.Unlock()
	for _, e := range gone {
		if err := os.Remove(filepath.Join(s.opts.Dir, e.name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.opts.Log.Warn("removing an old profile", "err", err)
		}
	}
}

// between returns the profiles of an event that share time with an interval.
func (s *Store) between(event codelink.Event, start, end time.Time) []entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []entry
	for _, e := range s.entries {
		if e.event == event && e.begin.Before(end) && e.end.After(start) {
			all = append(all, e)
		}
	}
	return all
}
