// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/docs/runbooks"
	"github.com/teescope/teescope/docs/user"
	"github.com/teescope/teescope/internal/lib/config"
	"github.com/teescope/teescope/internal/server/dashboards"
	"github.com/teescope/teescope/internal/server/httpapi"
)

// webOptions returns the options of the server that do not depend on the services.
func webOptions(o Options, host string) httpapi.Options {
	c := o.Config
	return httpapi.Options{
		Listen: c.Listen, Hostname: host, Hosts: hosts(c), WebConfig: c.WebConfigFile, Insecure: c.Web.Insecure,
		Socket: httpapi.Socket{Mode: c.Web.SocketMode, Group: c.Web.SocketGroup}, AccessLog: httpapi.AccessLog{Requests: c.Web.AccessLog, To: os.Stderr}, Log: o.Log,
	}
}

// page adds the page, the API of a database, and the texts that the page shows.
func (p *program) page(api http.Handler) {
	p.web.API, p.web.Page, p.web.Panels, p.web.Families = api, p.Page, dashboards.Serve(), httpapi.Families(user.Metrics)
	p.web.Runbooks = runbooks.Files
}

// routes returns the routes of an agent without a port, for another part of the program.
func (p *program) routes(metrics prometheus.Gatherer) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", httpapi.Metrics(metrics, p.Log))
	mux.Handle("GET /api/top/threads", p.web.Threads)
	mux.Handle("/api/control", p.web.Control)
	mux.Handle("/api/control/{id}", p.web.Control)
	mux.Handle("POST /api/manifest", p.web.Manifests)
	return mux
}

// hosts lists the names that the configuration gives this server.
func hosts(c *config.Config) []string {
	all := slices.Clone(c.Web.Hosts)
	if u, err := url.Parse(c.ExternalURL); err == nil && u.Hostname() != "" {
		all = append(all, u.Hostname())
	}
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && host != "" {
		all = append(all, host)
	}
	return all
}
