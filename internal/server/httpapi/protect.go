// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// policy allows the page only its own files and requests to its own origin. Images may be data: URLs, because style
// sheets embed small ones.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"font-src 'self'; connect-src 'self'; manifest-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// checkHost refuses requests for other host names if the server listens on a loopback address. It prevents DNS rebinding:
// the owner of a web site could point its name at 127.0.0.1 and read all data through a visitor's browser. On other
// addresses any name may be valid, so no name is refused.
func (s *Server) checkHost(addr net.Addr, next http.Handler) http.Handler {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.isLocal(r.Host) {
			writeText(w, http.StatusForbidden, fmt.Sprintf(
				"teescope listens on %s and answers only requests for localhost, not for %q.\n"+
					"Open http://%s, or start teescope with --listen to serve other hosts.\n", addr, r.Host, addr))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// checkOrigin refuses requests for data from pages of another origin. Such a page cannot read the responses, but it can
// request expensive ones through a visitor's browser. Browsers mark these requests with Sec-Fetch-Site, and with Origin
// if the page wants to read the response. Other programs send neither. A navigation to the data is allowed.
func checkOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isData(r.URL.Path) && isForeign(r) {
			writeText(w, http.StatusForbidden, fmt.Sprintf(
				"teescope answers its own page and programs, and no page of another origin (this one is %q).\n"+
					"Behind a proxy, let it pass the header Host on as it is.\n", r.Header.Get("Origin")))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isData(path string) bool { return strings.HasPrefix(path, "/api/") || path == "/metrics" }

func isForeign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		return err != nil || !strings.EqualFold(u.Host, r.Host) // "null" has no host
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return r.Header.Get("Sec-Fetch-Dest") != "document"
}

// isLocal ignores the port, which differs behind an ssh tunnel.
func (s *Server) isLocal(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || // RFC 6761
		host != "" && host == strings.ToLower(s.opts.Hostname)
}
