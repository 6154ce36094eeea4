// SPDX-License-Identifier: Apache-2.0

// Package spool keeps requests on disk until a receiver has accepted them: in order, over restarts, within a size and an
// age.
//
// It counts dropped requests. It does not depend on their content.
package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/lib/atomicfile"
	"github.com/teescope/teescope/internal/lib/inputfile"
)

const (
	suffix = ".request"
	// sumBytes is the size of the checksum before a request.
	sumBytes = 4
	// maxRequest is the maximum size of a request, in bytes.
	maxRequest = 64 << 20
	// maxRequests is the maximum number of requests on disk. Each takes about 100 bytes of memory.
	maxRequests = 200_000
	// block is the size of the smallest file on the disk, in bytes.
	block = 4096
)

// Reasons for which samples are dropped.
const (
	Full    = "full"    // the size was reached
	Old     = "old"     // the age was reached
	Refused = "refused" // the receiver refuses them for good
	Damaged = "damaged" // the file could not be read again
	Disk    = "disk"    // the file could not be written
	// Unconfigured is the reason for samples that Discard removes: the receiver is no longer configured.
	Unconfigured = "unconfigured"
)

// Reasons lists the reasons of a [Queue].
func Reasons() []string { return []string{Full, Old, Refused, Damaged, Disk} }

// Options configure a [Queue].
type Options struct {
	Dir   string        // is made
	Bytes int64         // maximum size of all files; 0 is unlimited
	Age   time.Duration // of samples; 0 is unlimited
	Log   *slog.Logger

	now func() time.Time
}

// entry is a request on disk. Its file name contains all fields except the size.
type entry struct {
	number  uint64
	samples int
	first   int64 // time of the oldest sample, in ms
	bytes   int64
}

func (e entry) file() string {
	return fmt.Sprintf("%020d-%d-%d%s", e.number, e.samples, e.first, suffix)
}

// Queue is a queue of requests on disk.
type Queue struct {
	opts Options

	mu      sync.Mutex
	entries []entry // the oldest first
	next    uint64
	bytes   int64
	sending bool // the first entry is being sent, and is not dropped
	dropped map[string]uint64
	since   lost
	sent    uint64
	failed  string // the last error of the disk that was logged
	added   chan struct{}
}

// lost describes what was dropped since the last request that was sent.
type lost struct {
	samples    uint64
	first, end int64
}

// State describes a queue.
type State struct {
	Requests int
	Samples  uint64
	Bytes    int64
	Oldest   time.Time // of the samples that wait; zero if none waits
	Sent     uint64    // samples, since the start
	Dropped  map[string]uint64
}

// Open reads the files of an earlier process.
func Open(o Options) (*Queue, error) {
	if o.now == nil {
		o.now = time.Now
	}
	q := &Queue{opts: o, dropped: map[string]uint64{}, added: make(chan struct{}, 1)}
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return nil, err
	}
	files, err := os.ReadDir(o.Dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if name, is := strings.CutSuffix(f.Name(), atomicfile.Suffix); is {
			if _, ours := parse(name); ours {
				if err := os.Remove(filepath.Join(o.Dir, f.Name())); err != nil {
					o.Log.Warn("an unfinished file with samples could not be removed", "err", err)
				}
			}
			continue
		}
		e, ok := parse(f.Name())
		if !ok {
			continue
		}
		info, err := f.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		e.bytes = onDisk(info.Size())
		q.entries, q.bytes, q.next = append(q.entries, e), q.bytes+e.bytes, max(q.next, e.number+1)
	}
	slices.SortFunc(q.entries, func(a, b entry) int { return int(min(max(int64(a.number-b.number), -1), 1)) })
	if n := len(q.entries); n > 0 {
		o.Log.Info("samples of an earlier run will be sent", "requests", n, "oldest", time.UnixMilli(q.entries[0].first).UTC().Format(time.RFC3339))
	}
	return q, nil
}

// Discard removes the files of an earlier process in a directory that is no longer used by a queue. It returns how many
// samples no receiver will get.
func Discard(dir string) (samples uint64, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		if e, ok := parse(f.Name()); ok {
			samples += uint64(e.samples)
		}
	}
	return samples, os.RemoveAll(dir)
}

func onDisk(bytes int64) int64 { return (bytes + block - 1) / block * block }

func parse(name string) (e entry, ok bool) {
	text, ok := strings.CutSuffix(name, suffix)
	parts := strings.Split(text, "-")
	if !ok || len(parts) != 3 {
		return entry{}, false
	}
	var errs [3]error
	e.number, errs[0] = strconv.ParseUint(parts[0], 10, 63)
	e.samples, errs[1] = strconv.Atoi(parts[1])
	e.first, errs[2] = strconv.ParseInt(parts[2], 10, 64)
	return e, errors.Join(errs[:]...) == nil && e.samples >= 0 && e.file() == name
}

// Add keeps a request with a number of samples, of which the oldest has a time. Requests beyond the limits of size and age
// are dropped.
func (q *Queue) Add(body []byte, samples int, oldest time.Time) {
	data := binary.LittleEndian.AppendUint32(make([]byte, 0, sumBytes+len(body)), crc32.ChecksumIEEE(body))
	data = append(data, body...)
	q.mu.Lock()
	defer q.mu.Unlock()
	e := entry{number: q.next, samples: samples, first: oldest.UnixMilli(), bytes: onDisk(int64(len(data)))}
	q.next++
	err := errTooLarge
	if len(body) <= maxRequest && (q.opts.Bytes == 0 || e.bytes <= q.opts.Bytes) {
		q.makeSpace(e.bytes)
		err = atomicfile.Write(filepath.Join(q.opts.Dir, e.file()), data, 0o640)
	}
	if err != nil {
		q.drop(e, Disk)
		if said := err.Error(); said != q.failed {
			q.failed = said
			q.opts.Log.Warn("samples could not be written and are dropped", "dir", q.opts.Dir, "err", err)
		}
		return
	}
	q.failed = ""
	q.entries, q.bytes = append(q.entries, e), q.bytes+e.bytes
	select {
	case q.added <- struct{}{}:
	default:
	}
}

var errTooLarge = errors.New("the request is larger than what may be kept")

// makeSpace drops the oldest requests until another one fits.
func (q *Queue) makeSpace(bytes int64) {
	for {
		at := 0
		if q.sending {
			at = 1
		}
		if at >= len(q.entries) {
			return
		}
		why := ""
		switch {
		case q.opts.Bytes > 0 && q.bytes+bytes > q.opts.Bytes, len(q.entries) >= maxRequests:
			why = Full
		case q.opts.Age > 0 && q.entries[at].first < q.opts.now().Add(-q.opts.Age).UnixMilli():
			why = Old
		default:
			return
		}
		q.remove(at, why)
	}
}

// remove removes an entry. With a reason its samples are lost.
func (q *Queue) remove(at int, why string) {
	e := q.entries[at]
	q.entries, q.bytes = slices.Delete(q.entries, at, at+1), q.bytes-e.bytes
	if err := os.Remove(filepath.Join(q.opts.Dir, e.file())); err != nil {
		q.opts.Log.Warn("a file with samples could not be removed", "err", err)
	}
	if why != "" {
		q.drop(e, why)
	}
}

// drop counts lost samples. The first ones since the last request that was sent are logged at once.
func (q *Queue) drop(e entry, why string) {
	if q.since.samples == 0 {
		q.since.first = e.first
		q.opts.Log.Warn("samples are dropped before the receiver has them", "reason", why, "from", time.UnixMilli(e.first).UTC().Format(time.RFC3339))
	}
	q.since.samples, q.since.end = q.since.samples+uint64(e.samples), e.first
	q.dropped[why] += uint64(e.samples)
}

// take returns the oldest request, or ok=false if there is none. It stays the oldest until done.
func (q *Queue) take() (body []byte, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.makeSpace(0)
	for len(q.entries) > 0 {
		data, err := inputfile.Read(filepath.Join(q.opts.Dir, q.entries[0].file()), maxRequest+sumBytes)
		if err == nil && len(data) >= sumBytes && crc32.ChecksumIEEE(data[sumBytes:]) == binary.LittleEndian.Uint32(data) {
			q.sending = true
			return data[sumBytes:], true
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, inputfile.ErrSize) {
			q.opts.Log.Warn("a file with samples could not be read; trying again", "err", err)
			return nil, false // a temporary error, such as too many open files
		}
		q.remove(0, Damaged)
	}
	return nil, false
}

// release lets the oldest request wait for another try.
func (q *Queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sending = false
}

// all says that a receiver has taken all samples of a request.
const all = -1

// done removes the oldest request. Taken is how many of its samples the receiver has taken, or all but the refused ones.
func (q *Queue) done(taken, refused int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[0]
	q.sending = false
	if taken == all || taken > e.samples {
		taken = e.samples - min(refused, e.samples)
	}
	refused = e.samples - taken
	q.sent += uint64(taken)
	if refused == 0 && q.since.samples > 0 {
		q.opts.Log.Warn("sending again; samples were dropped", "samples", q.since.samples,
			"from", time.UnixMilli(q.since.first).UTC().Format(time.RFC3339), "to", time.UnixMilli(q.since.end).UTC().Format(time.RFC3339))
		q.since = lost{}
	}
	q.remove(0, "")
	if refused > 0 {
		e.samples = refused
		q.drop(e, Refused)
	}
}

// State returns the waiting, sent and dropped requests.
func (q *Queue) State() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := State{Requests: len(q.entries), Bytes: q.bytes, Sent: q.sent, Dropped: map[string]uint64{}}
	for _, why := range Reasons() {
		s.Dropped[why] = q.dropped[why]
	}
	for _, e := range q.entries {
		s.Samples += uint64(e.samples)
	}
	if len(q.entries) > 0 {
		s.Oldest = time.UnixMilli(q.entries[0].first)
	}
	return s
}
