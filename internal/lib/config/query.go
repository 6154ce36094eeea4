// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/url"
	"strings"
)

// Query is the database that a server asks instead of having its own.
type Query struct {
	URL        *url.URL // nil for a database of its own
	ConfigFile string   // TLS and credentials, in the format of Prometheus' http_config
}

func queryKeys() []*key {
	file := fileKey("query.http-config-file", "TLS and credentials for query.url, in the format of Prometheus' http_config",
		func(c *Config) *string { return &c.Query.ConfigFile })
	file.commands = Server
	return []*key{
		{
			name: "query.url", commands: Server, kind: "url", defText: "none",
			usage: "store nothing, and ask this Prometheus-compatible server for the page and the analysis",
			def:   constant(""),
			set: func(c *Config, values []string) (err error) {
				c.Query.URL = nil
				if address := strings.Join(values, ""); address != "" {
					c.Query.URL, err = parseReceiver(address, "http://prometheus:9090")
				}
				return err
			},
			get: func(c *Config) []string {
				if c.Query.URL == nil {
					return []string{""}
				}
				return []string{c.Query.URL.String()}
			},
		},
		file,
	}
}

// needDatabase lists the keys of what only a server with a database of its own does.
func needDatabase() []string {
	return []string{
		"targets", "discovery", "scrape", "kubernetes.pods", "remote-write.urls", "rules.files", "alerting.alertmanagers", "alerting.webhooks",
	}
}

// withoutDatabase reports what a server that asks another database cannot do.
func (l *loader) withoutDatabase() {
	for _, name := range needDatabase() {
		if o := l.cfg.origins[name]; o.Kind != "default" {
			l.problem(o, name, "a server with query.url stores and scrapes nothing: leave it out, and let %s do this", l.cfg.Query.URL.Host)
		}
	}
}
