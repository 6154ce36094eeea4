// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read"
	"github.com/teescope/teescope/internal/run/profile/write"
)

const (
	maxOpened      = 4 // files of a request
	maxOpenedBytes = 16 << 20
	maxUploads     = 3 // at a time, so that clients that send slowly hold no place of other queries
	maxOfClient    = 1 // of them, so that two clients that send slowly leave a place
	// The files must arrive within uploadTime plus the time that they take at uploadRate, in bytes per second. So a slow client frees
	// its place within 27 s.
	uploadTime = 5 * time.Second
	uploadRate = 768 << 10
)

// opened are the recorded files of a request, which the server does not keep.
type opened struct {
	names    []string
	profiles []*profile.Profile
}

// endless is after the time of each sample, also of those of a machine whose clock is ahead.
var endless = time.Unix(9e9, 0)

// serveOpened answers about the files of the body as the same path does about kept profiles. Without start and end they are shown as
// a whole. The parameter file is the number of the file whose tree is wanted.
func (s *Store) serveOpened(answer func(o opened, a query, q url.Values) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if !q.Has("start") {
			q.Set("start", "0")
		}
		a, err := readQuery(q, "")
		if err != nil {
			refuse(w, invalid{err})
			return
		}
		if !q.Has("end") {
			a.end = endless
		}
		received := s.upload(r)
		if received == nil {
			refuse(w, errBusy)
			return
		}
		defer received()
		body, err := io.ReadAll(&timely{from: http.MaxBytesReader(w, r.Body, maxOpenedBytes), until: http.NewResponseController(w).SetReadDeadline, began: time.Now()})
		if errors.Is(err, os.ErrDeadlineExceeded) {
			refuse(w, fmt.Errorf("%w: send at least %d KiB/s", errSlow, uploadRate>>10))
			return
		}
		if err != nil {
			refuse(w, invalid{fmt.Errorf("reading the files, which may have %d MiB: %w", maxOpenedBytes>>20, err)})
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var got any
		if !s.inTurn(w, r, nil, func(ctx context.Context) error {
			o, err := readOpened(ctx, r)
			if err != nil {
				return cmp.Or(ctx.Err(), error(invalid{err}))
			}
			got, err = answer(o, a, q)
			return err
		}) {
			return
		}
		received()
		jsonapi.Answer(w, got)
	}
}

// upload waits for a place for the files of a client. It returns nil if that takes too long. Further calls of received do nothing.
func (s *Store) upload(r *http.Request) (received func()) {
	leave := s.uploads.TakeWithin(r.Context(), r.RemoteAddr, patience)
	if leave == nil {
		return nil
	}
	return sync.OnceFunc(leave)
}

// errSlow is the error of a client that sends too slowly.
var errSlow = errors.New("the files have not arrived in time")

// timely reads until a deadline, which moves with each byte.
type timely struct {
	from  io.Reader
	until func(time.Time) error
	began time.Time
	bytes int64
}

func (t *timely) Read(b []byte) (int, error) {
	limit := uploadTime + time.Duration(t.bytes)*time.Second/uploadRate
	if err := t.until(t.began.Add(limit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	n, err := t.from.Read(b)
	t.bytes += int64(n)
	if errors.Is(err, io.EOF) {
		_ = t.until(time.Time{}) // the answer has no such deadline; without support there was none
	}
	return n, err
}

func readOpened(ctx context.Context, r *http.Request) (o opened, err error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return o, fmt.Errorf("the body must have files (multipart/form-data): %w", err)
	}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && len(o.profiles) >= maxOpened {
			err = fmt.Errorf("more than %d files", maxOpened)
		}
		if err == nil {
			err = o.add(ctx, part)
		}
		if err != nil {
			return o, err
		}
	}
	if len(o.profiles) == 0 {
		return o, errors.New("the body has no file")
	}
	return o, nil
}

func (o *opened) add(ctx context.Context, part *multipart.Part) error {
	each := limits()
	each.Bytes /= maxOpened
	each.Ended = ctx.Err
	p, err := read.Read(during{ctx, part}, read.Options{Times: true}, each)
	if err != nil {
		return fmt.Errorf("%.100q: %w", part.FileName(), err)
	}
	o.names, o.profiles = append(o.names, part.FileName()), append(o.profiles, p)
	return nil
}

// during reads until its time has ended: a few bytes may decompress to gigabytes of text. What was read is bounded by Limits.Ended.
type during struct {
	context.Context
	from io.Reader
}

func (d during) Read(b []byte) (int, error) {
	if err := d.Err(); err != nil {
		return 0, err
	}
	return d.from.Read(b)
}

func openedThreads(o opened, a query, _ url.Values) (any, error) {
	var begin, end time.Time
	for _, p := range o.profiles {
		if last := p.Began.Add(p.Lasted); !p.Began.IsZero() {
			if begin.IsZero() || p.Began.Before(begin) {
				begin = p.Began
			}
			if last.After(end) {
				end = last
			}
		}
	}
	if a.start.After(begin) {
		begin = a.start
	}
	if a.end.Before(end) {
		end = a.end
	}
	if !begin.Before(end) {
		begin, end = time.Unix(0, 0), time.Unix(1, 0) // the files have no times
	}
	l := newTimeline(begin, end)
	for _, timed := range []bool{true, false} { // times have precedence over numbers, which cannot be added to them
		for _, p := range o.profiles {
			p.Select(a.value)
			if _, is := p.Nanoseconds(); is == timed {
				l.add(p, a.labels)
			}
		}
	}
	return l.answer(), nil
}

func openedTree(o opened, a query, q url.Values) (any, error) {
	at, err := strconv.Atoi(q.Get("file"))
	if err != nil || at < 0 || at >= len(o.profiles) {
		at = 0
	}
	p := o.profiles[at]
	b := profile.NewBuilder("pprof", p.Values, limits())
	if err := b.Merge(p, func(one *profile.Sample) bool { return a.during(one) && matches(p, one, a.labels) }); err != nil {
		return nil, err
	}
	part := b.Profile()
	part.Main, part.Notes = p.Main, slices.Clone(p.Notes)
	if err := a.show(part); err != nil {
		return nil, err
	}
	if len(part.Samples) == 0 {
		return write.NoTree(o.names[at], "the file has no sample of that"), nil
	}
	return write.NewTree(part, o.names[at]), nil
}
