// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/lazy"
)

// Web configures access to the port.
type Web struct {
	Insecure    bool     // whether to listen beyond the loopback without authentication
	Hosts       []string // names that requests may use for this server; *.NAME for all below NAME
	AccessLog   string   // which requests are logged: none, queries or all
	SocketMode  fs.FileMode
	SocketGroup string // name or number; empty for that of the process
}

// socketPrefix begins the address of a unix socket.
const socketPrefix = "unix:"

func webKeys() []*key {
	return []*key{
		listenKey(), webConfigFileKey(), webInsecureKey(), webHostsKey(), webAccessLogKey(), socketModeKey(), socketGroupKey(), externalURLKey(),
	}
}

func listenKey() *key {
	return &key{
		name: "listen", commands: Any, kind: "host:port",
		usage: "address of the page, /metrics and the API; unix:PATH is a socket of this machine",
		def:   constant("127.0.0.1:9750"),
		set: one(func(c *Config, s string) error {
			if err := checkListen(s); err != nil {
				return err
			}
			c.Listen = s
			return nil
		}),
		get: func(c *Config) []string { return []string{c.Listen} },
	}
}

func webConfigFileKey() *key {
	return &key{
		name: "web.config-file", commands: Any, kind: "file",
		usage: "TLS and basic authentication, in the format of the Prometheus exporter toolkit", defText: "none",
		def: constant(""),
		set: func(c *Config, values []string) error { c.WebConfigFile = strings.Join(values, ""); return nil },
		get: func(c *Config) []string { return []string{c.WebConfigFile} },
	}
}

func webInsecureKey() *key {
	return &key{
		name: "web.insecure", commands: Any, kind: "bool",
		usage: "allow an address beyond this machine without authentication",
		def:   constant("false"),
		set: one(func(c *Config, s string) (err error) {
			c.Web.Insecure, err = parseBool(s)
			return err
		}),
		get: func(c *Config) []string { return []string{strconv.FormatBool(c.Web.Insecure)} },
	}
}

func webAccessLogKey() *key {
	choices := []string{"none", "queries", "all"}
	return &key{
		name: "web.access-log", commands: Any, kind: "requests",
		usage: "requests that are logged to standard error as JSON: none, queries (those of the API, with the query) or all",
		def:   constant("none"),
		set: one(func(c *Config, s string) error {
			c.Web.AccessLog = s
			return checkChoice(s, choices)
		}),
		get: func(c *Config) []string { return []string{c.Web.AccessLog} },
	}
}

func webHostsKey() *key {
	return &key{
		name: "web.hosts", commands: Any, kind: "name,...", sep: ",", flagSep: true,
		usage: "names of this server that requests may use, besides localhost, the host name and addresses; *.NAME allows all below NAME",
		def:   none,
		set: func(c *Config, values []string) error {
			c.Web.Hosts = values
			return inEach(values, checkHostName)
		},
		get: func(c *Config) []string { return c.Web.Hosts },
	}
}

// hostName matches a name without a port.
var hostName = lazy.Regexp(`^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$`)

func checkHostName(s string) error {
	if !hostName().MatchString(s) {
		return fmt.Errorf("%q is not a host name: use for example node1.example.org or *.example.org, without a port", s)
	}
	return nil
}

func socketModeKey() *key {
	return &key{
		name: "web.socket-mode", commands: Any, kind: "mode",
		usage: "permissions of the socket that --listen unix:PATH creates",
		def:   constant("0660"),
		set: one(func(c *Config, s string) error {
			n, err := strconv.ParseUint(s, 8, 9)
			if err != nil {
				return fmt.Errorf("%q is not a mode: use for example 0660", s)
			}
			c.Web.SocketMode = fs.FileMode(n)
			return nil
		}),
		get: func(c *Config) []string { return []string{fmt.Sprintf("%04o", c.Web.SocketMode)} },
	}
}

func socketGroupKey() *key {
	return &key{
		name: "web.socket-group", commands: Any, kind: "group",
		usage: "group of that socket", defText: "that of the process",
		def: constant(""),
		set: func(c *Config, values []string) error { c.Web.SocketGroup = strings.Join(values, ""); return nil },
		get: func(c *Config) []string { return []string{c.Web.SocketGroup} },
	}
}

// checkSocket checks the path of a unix socket. The kernel limits it to 107 bytes.
func checkSocket(path string) error {
	if !filepath.IsAbs(path) {
		return errors.New("the path of a socket must be absolute: use for example unix:/run/teescope/teescope.sock")
	}
	if len(path) > 107 {
		return fmt.Errorf("the path of a socket has %d bytes; the maximum is 107", len(path))
	}
	return nil
}

func externalURLKey() *key {
	return &key{
		name: "web.external-url", commands: Up | Server, kind: "url",
		usage: "external address of the page, for links in alerts", defText: "the listen address",
		def: constant(""),
		set: func(c *Config, values []string) error {
			c.ExternalURL = strings.Join(values, "")
			if c.ExternalURL == "" {
				return nil
			}
			u, err := parseReceiver(c.ExternalURL, "https://teescope.example.org")
			if err == nil && (u.RawQuery != "" || u.Fragment != "") {
				err = fmt.Errorf("%q: only scheme, host and path", c.ExternalURL)
			}
			c.ExternalURL = strings.TrimSuffix(c.ExternalURL, "/")
			return err
		},
		get: func(c *Config) []string { return []string{c.ExternalURL} },
	}
}
