// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/lib/text"
)

// policy allows the page only its own files and requests to its own origin. Images may be data: URLs, because style
// sheets embed small ones.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"font-src 'self'; connect-src 'self'; manifest-src 'self'; frame-src 'self'; " +
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

// checkHost refuses requests for other host names. It prevents DNS rebinding: the owner of a web site could point its
// name at this address and read all data through a visitor's browser. A browser sends an IP address only if its user or
// a link named it, so it is allowed, except for other addresses at the loopback. A password and a certificate belong to
// a name, so requests with these need no check. Browsers do not connect to unix sockets.
func (s *Server) checkHost(addr net.Addr, next http.Handler) http.Handler {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isAuthenticated(r) || isCertified(r) || s.isAllowed(r.Host, tcp.IP.IsLoopback()) {
			next.ServeHTTP(w, r)
			return
		}
		name := text.Cut(r.Host, maxShown)
		if tcp.IP.IsLoopback() {
			writeText(w, http.StatusForbidden, fmt.Sprintf(
				"teescope listens on %s and answers only requests for localhost, not for %q.\n"+
					"Open http://%s, add the name with --web.hosts, or start teescope with --listen to serve other hosts.\n", addr, name, addr))
			return
		}
		writeText(w, http.StatusForbidden, fmt.Sprintf(
			"teescope does not answer requests for the host %q, because a web site could use such a name to read its data.\n"+
				"If the name is right, start teescope with --web.hosts %q or with --web.external-url. Or use an IP address.\n", name, name))
	})
}

// maxShown is how much of a text that a client sent is repeated, in bytes.
const maxShown = 128

// isCertified reports whether the client has checked the certificate of the host that it names.
func isCertified(r *http.Request) bool {
	return r.TLS != nil && r.TLS.ServerName != "" && strings.EqualFold(r.TLS.ServerName, hostOf(r.Host))
}

// checkOrigin refuses requests for data that another site makes a visitor's browser send: from a script, as an image, and
// as a navigation. The site cannot read the responses, but it can request expensive ones. Browsers mark these requests
// with Sec-Fetch-Site, if the address is that of this machine or has TLS, and with Origin if a script asks to read the
// response. Other programs send neither. A link of another site to the page is allowed.
func checkOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isData(r.URL.Path) && isForeign(r) {
			writeText(w, http.StatusForbidden, fmt.Sprintf(
				"teescope answers its own page and programs, and no other site (Origin %q, Sec-Fetch-Site %q).\n"+
					"To open this address in a browser, enter it instead of following a link. Behind a proxy, let it pass the header Host on as it is.\n",
				text.Cut(r.Header.Get("Origin"), maxShown), text.Cut(r.Header.Get("Sec-Fetch-Site"), maxShown)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isData(path string) bool { return strings.HasPrefix(path, "/api/") || path == "/metrics" }

func isForeign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || !strings.EqualFold(u.Host, r.Host) // "null" has no host
}

// isAllowed reports whether requests may name a host.
func (s *Server) isAllowed(hostport string, loopback bool) bool {
	host := hostOf(hostport)
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback() || !loopback || slices.Contains(s.opts.Hosts, host)
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || // RFC 6761
		host != "" && (host == strings.ToLower(s.opts.Hostname) || slices.ContainsFunc(s.opts.Hosts, func(allowed string) bool {
			return matches(strings.ToLower(allowed), host)
		}))
}

// matches reports whether a name is the allowed one, or below it if that is *.NAME.
func matches(allowed, host string) bool {
	if parent, any := strings.CutPrefix(allowed, "*."); any {
		return strings.HasSuffix(host, "."+parent)
	}
	return host == allowed
}

// hostOf returns the host in lower case and without the port, which differs behind an ssh tunnel.
func hostOf(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}
