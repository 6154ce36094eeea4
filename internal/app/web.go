// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net"
	"net/url"
	"os"
	"slices"

	"github.com/teescope/teescope/internal/lib/config"
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
