// SPDX-License-Identifier: Apache-2.0

package continuous

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Limits of the profiles that wait for a server. The oldest ones go first.
const (
	maxWaiting = 16
	maxBytes   = 8 << 20
	maxOne     = maxBytes / 2 // of one of them
)

// header is the HTTP header with the name of the profile in an answer. A client passes this name to get the next one.
const header = "Teescope-Profile"

// waiting is a profile.
type waiting struct {
	number uint64
	data   []byte
}

// ring keeps the last profiles. Its name changes with each start of the agent, which counts them from one again.
type ring struct {
	name string

	mu      sync.Mutex // protects the fields below
	last    uint64     // number of the newest
	waiting []waiting  // in ascending order
	bytes   int
	dropped uint64
}

func newRing() *ring { return &ring{name: rand.Text()[:8]} }

// add keeps a profile. A profile above the limit of all profiles together is dropped.
func (r *ring) add(data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	r.waiting = append(r.waiting, waiting{r.last, data})
	r.bytes += len(data)
	for len(r.waiting) > maxWaiting || r.bytes > maxBytes {
		r.bytes -= len(r.waiting[0].data)
		r.waiting = r.waiting[1:]
		r.dropped++
	}
}

// after returns the oldest profile that is newer than the named one, and its name. Names of another start are older than
// all. A client no longer needs profiles that it has seen, but another client may request them.
func (r *ring) after(name string) (data []byte, its string) {
	start, text, _ := strings.Cut(name, "/")
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil || start != r.name {
		number = 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.waiting {
		if w.number > number {
			return w.data, r.name + "/" + strconv.FormatUint(w.number, 10)
		}
	}
	return nil, ""
}

// ServeHTTP answers GET /api/profiles/next?after=NAME with the next profile in pprof's format, and its name in header. If there
// is none yet, it answers with 204.
func (p *Profiler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, name := p.profiles.after(r.URL.Query().Get("after"))
	if data == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set(header, name)
	_, _ = w.Write(data) // fails only if the client has disconnected
}
