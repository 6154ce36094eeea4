// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// maxBody is the maximum size of a request body. The largest bodies are queries, whose limit is less than half of it.
const maxBody = 64 << 10

// handler routes all requests to addr.
func (s *Server) handler(addr net.Addr) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /-/healthy", s.healthy)
	mux.HandleFunc("GET /-/ready", s.ready)
	if s.opts.Metrics != nil {
		mux.Handle("GET /metrics", s.whenReady(newMetrics(s.opts.Metrics, s.opts.Log, s.gate())))
	}
	if s.opts.Threads != nil {
		mux.Handle("GET /api/top/threads", s.whenReady(s.opts.Threads))
	}
	if s.opts.Manifests != nil {
		mux.Handle("POST /api/manifest", s.whenReady(s.opts.Manifests))
	}
	if s.opts.Control != nil {
		mux.Handle("/api/control", s.whenReady(s.opts.Control))
		mux.Handle("/api/control/{id}", s.whenReady(s.opts.Control))
	}
	if s.opts.Page != nil {
		// The page queries which features this server has. An error would be for something that is wrong.
		for path, handler := range map[string]http.Handler{
			"/api/control": s.opts.Control, "/api/runs": s.opts.Runs, "/api/profiles/tree": s.opts.Profiles, "/api/profiles/threads": s.opts.Profiles,
		} {
			if handler == nil {
				mux.HandleFunc("GET "+path, hasNone)
			}
		}
	}
	if s.opts.NextProfile != nil {
		mux.Handle("GET /api/profiles/next", s.whenReady(s.opts.NextProfile))
	}
	if s.opts.Profiles != nil {
		mux.Handle("GET /api/profiles", named(s.whenReady(s.opts.Profiles)))
		mux.Handle("GET /api/profiles/", named(s.whenReady(s.opts.Profiles)))
		for _, path := range []string{"/api/profiles/tree", "/api/profiles/threads"} {
			mux.Handle("POST "+path, named(s.whenReady(s.opts.Profiles))) // of files in the body
		}
	}
	if s.opts.Findings != nil {
		for _, path := range []string{"/api/findings", "/api/findings/", "/api/operations"} {
			mux.Handle(path, named(s.whenReady(s.opts.Findings)))
		}
	}
	if s.opts.Fleet != nil {
		mux.Handle("GET /api/fleet", named(s.whenReady(s.opts.Fleet)))
	}
	if s.opts.Panels != nil {
		mux.Handle("GET /api/dashboards/panel/{id}", s.opts.Panels)
	}
	if s.opts.Own != nil {
		mux.Handle("/api/dashboards/own", s.whenReady(s.opts.Own))
		mux.Handle("/api/dashboards/own/", s.whenReady(s.opts.Own))
	}
	if s.opts.Runs != nil {
		mux.Handle("/api/runs", named(s.whenReady(s.opts.Runs)))
		mux.Handle("/api/runs/", named(s.whenReady(s.opts.Runs)))
	}
	if s.opts.API != nil {
		mux.Handle("/api/v1/", named(s.opts.API))
	}
	if s.opts.Runbooks != nil {
		mux.HandleFunc("GET "+runbooksPath+"{name}", runbook(s.opts.Runbooks))
	}
	if s.opts.Families != nil {
		mux.Handle("GET /docs/metrics/{name}", s.opts.Families)
	}
	mux.HandleFunc("/api/", http.NotFound)
	mux.HandleFunc("/-/", http.NotFound)
	if s.opts.Page != nil {
		mux.HandleFunc("GET /graph", explore)
		mux.Handle("/", onlyGet(newPage(s.opts.Page)))
	} else {
		mux.Handle("/{$}", onlyGet(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			writeText(w, http.StatusOK, "teescope without a page. See /metrics, /-/healthy and /-/ready.\n")
		})))
	}
	return headers(s.checkHost(addr, checkOrigin(limitBody(mux))))
}

// hasNone answers null: this server does not have the requested feature.
func hasNone(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, "null\n")
}

// explore redirects from the path of Prometheus's graph page, to which links in alerts point, to the page's Explore view.
// The target is relative, because a proxy may serve teescope below a path.
func explore(w http.ResponseWriter, r *http.Request) {
	view := url.Values{"page": {"explore"}}
	if expr := r.URL.Query().Get("g0.expr"); expr != "" {
		view.Set("expr", expr)
	}
	w.Header().Set("Location", "./?"+view.Encode())
	w.WriteHeader(http.StatusFound)
}

// limitBody reads the body before the request is handled, so that a client that sends slowly holds no place in a queue.
// It refuses bodies that are too large. Run files and profiles are larger, and their handlers bound them.
func limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/runs" || strings.HasPrefix(r.URL.Path, "/api/profiles/") {
			next.ServeHTTP(w, r)
			return
		}
		if r.ContentLength > maxBody {
			writeText(w, http.StatusRequestEntityTooLarge, fmt.Sprintf(
				"The request's body has %d bytes; the maximum is %d.\nSplit a long query into several.\n", r.ContentLength, maxBody))
			return
		}
		if r.ContentLength != 0 {
			conn := connectionOf(r)
			conn.add(-1, 0) // it may be closed for a new one
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
			conn.add(1, 0)
			if err != nil {
				writeText(w, http.StatusBadRequest, fmt.Sprintf("Reading the request's body: %v.\n", err))
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		next.ServeHTTP(w, r)
	})
}

// gate returns the gate for clients of /metrics, or nil if their rate is not limited.
func (s *Server) gate() *gate {
	if s.opts.Frugal {
		return newGate()
	}
	return nil
}

// onlyGet allows only GET. The pattern "GET /" would conflict with "/api/v1/".
func onlyGet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	err := s.readiness()
	if err == nil && s.opts.Works != nil {
		err = s.opts.Works()
	}
	if err != nil {
		notReady(w, err)
		return
	}
	writeText(w, http.StatusOK, "teescope is ready.\n")
}

// Healthy returns nil, or the reason why a restart would help: a part of the program has stopped.
func (s *Server) Healthy() error {
	if s.opts.Hangs == nil || s.readiness() != nil {
		return nil
	}
	return s.opts.Hangs()
}

func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) {
	if err := s.Healthy(); err != nil {
		writeText(w, http.StatusServiceUnavailable, "teescope is not healthy: "+err.Error()+"\n")
		return
	}
	writeText(w, http.StatusOK, "teescope is healthy.\n")
}

func (s *Server) readiness() error {
	if s.opts.Ready == nil {
		return nil
	}
	return s.opts.Ready()
}

func (s *Server) whenReady(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.readiness(); err != nil {
			notReady(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func notReady(w http.ResponseWriter, reason error) {
	w.Header().Set("Retry-After", "1")
	writeText(w, http.StatusServiceUnavailable, "teescope is not ready: "+reason.Error()+"\n")
}

func writeText(w http.ResponseWriter, status int, s string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(s))
}

// named replaces the address of the sender by the name of the client, for handlers that share between clients.
func named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if client := connectionOf(r).name(); client != "" {
			shared := *r
			shared.RemoteAddr, r = client, &shared
		}
		next.ServeHTTP(w, r)
	})
}
