// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/lib/text"
)

// Values of [AccessLog.Requests].
const (
	logNone    = "none"
	logQueries = "queries" // requests below /api/
	logAll     = "all"
)

// AccessLog configures the log of requests.
type AccessLog struct {
	Requests string    // logNone, logQueries or logAll
	To       io.Writer // gets one JSON object for each request
}

const (
	maxLogged     = 17 << 10 // bytes of all parameters: the longest query that is evaluated, and times
	maxLoggedName = 256      // bytes of a path or a user
	maxPerSecond  = 200      // requests that are logged; the others are counted
)

// accessLog writes one line for each request when it has been answered, refused ones too.
type accessLog struct {
	requests string
	log      *slog.Logger
	now      func() time.Time

	mu      sync.Mutex
	second  int64
	lines   int
	omitted int
}

func newAccessLog(o AccessLog) *accessLog {
	return &accessLog{requests: o.Requests, log: slog.New(slog.NewJSONHandler(o.To, nil)), now: time.Now}
}

// accessLogged logs the requests for a handler, which writes into memory.
func (s *Server) accessLogged(next http.Handler) http.Handler {
	if s.opts.AccessLog.Requests == logNone || s.opts.AccessLog.Requests == "" {
		return next
	}
	l := newAccessLog(s.opts.AccessLog)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.requests == logQueries && !strings.HasPrefix(r.URL.Path, "/api/") {
			next.ServeHTTP(w, r)
			return
		}
		begun, body := l.now(), &copied{ReadCloser: r.Body}
		if isForm(r) {
			r.Body = body
		}
		next.ServeHTTP(w, r)
		if a, ok := w.(*answer); ok {
			l.write(r, body.text.Bytes(), a, l.now().Sub(begun))
		}
	})
}

// write writes the line, unless there are too many in this second.
func (l *accessLog) write(r *http.Request, body []byte, a *answer, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if second := l.now().Unix(); second != l.second {
		l.second, l.lines = second, 0
	}
	if l.lines++; l.lines > maxPerSecond {
		l.omitted++
		return
	}
	user := a.user
	if !a.verified {
		user = claimedName(r)
	}
	parts := []any{
		"client", a.conn.name(), "user", text.Cut(user, maxLoggedName), "user_verified", a.verified, "method", r.Method, "path", text.Cut(r.URL.Path, maxLoggedName),
		"parameters", parameters(r, body), "status", a.code(), "bytes", a.size, "seconds", took.Seconds(),
	}
	if l.omitted > 0 {
		parts = append(parts, "omitted_before", l.omitted)
		l.omitted = 0
	}
	l.log.Info("request", parts...)
}

// code returns the status of the answer. A handler that sets none answers 200.
func (a *answer) code() int {
	if a.status == 0 {
		return http.StatusOK
	}
	return a.status
}

// claimedName returns the name that the client claims.
func claimedName(r *http.Request) string {
	if name, _, ok := r.BasicAuth(); ok {
		return name
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return r.TLS.PeerCertificates[0].Subject.String()
	}
	return ""
}

// logged are the parameters of the API that are logged. Other parameters are omitted, because they could contain a
// secret of another service.
var logged = []string{"query", "match[]", "start", "end", "step", "time", "timeout", "limit", "workload", "metric"}

func parameters(r *http.Request, body []byte) map[string][]string {
	values, _ := url.ParseQuery(r.URL.RawQuery) // what can be parsed
	posted, _ := url.ParseQuery(string(body))
	found, rest := map[string][]string{}, maxLogged
	for _, name := range logged {
		for _, v := range append(posted[name], values[name]...) {
			if rest <= 0 {
				break
			}
			v = text.Cut(v, rest)
			rest -= len(v) + 1
			found[name] = append(found[name], v)
		}
	}
	return found
}

func isForm(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/x-www-form-urlencoded"
}

// copied keeps what is read of a body. limitBody bounds it.
type copied struct {
	io.ReadCloser

	text bytes.Buffer
}

// Read implements io.Reader.
func (c *copied) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.text.Write(p[:n])
	return n, err
}
