// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/common/expfmt"
)

// maxSharing is the maximum number of requests that wait for a scrape, besides those of regular scrapers.
const maxSharing = 64

// exposition serves the text of a textWriter. Requests for the same format share a scrape that began after each of them
// has arrived. So no answer is older than its request.
type exposition struct {
	from   textWriter
	errors scrapeErrors

	waiting admission

	mu     sync.Mutex
	latest map[encoding]*rendering
	spare  *bytes.Buffer // of an earlier scrape, to save allocations
	zip    *gzip.Writer  // of the last scrape; nil while in use
}

// encoding is the form of an exposition.
type encoding struct {
	format expfmt.Format
	zipped bool
}

// rendering is the text of one scrape.
type rendering struct {
	began time.Time
	done  chan struct{} // closed when text is complete
	text  *bytes.Buffer
	users int // requests that need the text, and the latest of its encoding
}

func newExposition(from textWriter, errors scrapeErrors) *exposition {
	return &exposition{
		from: from, errors: errors, waiting: newAdmission(maxSharing), latest: map[encoding]*rendering{},
	}
}

func (e *exposition) serve(w http.ResponseWriter, r *http.Request, format expfmt.Format, arrived time.Time, payer *gate, regular bool) {
	end, ok := e.waiting.admit(regular)
	if !ok {
		tooMany(w, maxSharing)
		return
	}
	defer end()
	in := encoding{format, acceptsGzip(r.Header)}
	one := e.after(r, in, arrived, payer)
	if one == nil {
		return // the client has gone
	}
	w.Header().Set("Content-Type", string(format))
	w.Header().Add("Vary", "Accept-Encoding")
	if in.zipped {
		w.Header().Set("Content-Encoding", "gzip")
	}
	payer.pay(costOfAnswer + time.Duration(one.text.Len())*costOfMegabyte>>20)
	writeShared(w, one.text.Bytes(), func() { e.release(one) })
}

// after returns a complete rendering that began after arrived. The caller must release it.
func (e *exposition) after(r *http.Request, in encoding, arrived time.Time, payer *gate) *rendering {
	for {
		e.mu.Lock()
		one := e.latest[in]
		begins := one == nil || isDone(one) && one.began.Before(arrived)
		if begins {
			one = e.begin(in)
		}
		one.users++
		e.mu.Unlock()
		if begins {
			e.render(one, in, payer)
		}
		select {
		case <-one.done:
		case <-r.Context().Done():
			e.release(one)
			return nil
		}
		if !one.began.Before(arrived) {
			return one
		}
		e.release(one)
	}
}

func isDone(one *rendering) bool {
	select {
	case <-one.done:
		return true
	default:
		return false
	}
}

// begin replaces the latest rendering of an encoding. It needs the lock.
func (e *exposition) begin(in encoding) *rendering {
	if old := e.latest[in]; old != nil {
		e.unuse(old)
	}
	text := e.spare
	e.spare = nil
	if text == nil {
		text = new(bytes.Buffer)
	}
	text.Reset()
	one := &rendering{began: time.Now(), done: make(chan struct{}), text: text, users: 1}
	e.latest[in] = one
	return one
}

func (e *exposition) render(one *rendering, in encoding, payer *gate) {
	defer close(one.done)
	defer payer.paySince(cpuTime())
	out := io.Writer(one.text)
	if in.zipped {
		zip := e.writer(one.text)
		defer e.keep(zip)
		defer func() { _ = zip.Close() }() // writing into memory does not fail
		out = zip
	}
	if err := e.from.WriteText(out, in.format); err != nil {
		e.errors.Println("writing metrics:", err)
	}
}

func (e *exposition) release(one *rendering) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unuse(one)
}

// unuse keeps the memory of an unused rendering for the next one. It needs the lock.
func (e *exposition) unuse(one *rendering) {
	if one.users--; one.users > 0 {
		return
	}
	if e.spare == nil || e.spare.Cap() < one.text.Cap() {
		e.spare = one.text
	}
}

// writer returns a compressing writer for w. It takes a quarter of a megabyte. A sync.Pool is emptied between two
// scrapes and would allocate a new one for each.
func (e *exposition) writer(w io.Writer) *gzip.Writer {
	e.mu.Lock()
	zip := e.zip
	e.zip = nil
	e.mu.Unlock()
	if zip == nil {
		// The default level takes twice the time and saves 5 % of the bytes.
		zip, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails only for unknown levels
	}
	zip.Reset(w)
	return zip
}

func (e *exposition) keep(zip *gzip.Writer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.zip = zip
}
