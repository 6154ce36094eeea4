// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/lib/text"
)

// Endpoint is a target with Prometheus metrics that is no agent, such as an application or an exporter.
type Endpoint struct {
	Job string // the label job of its series
	URL *url.URL
}

// defaultJob is the label job of endpoints without a name.
const defaultJob = "application"

// String returns the endpoint as a user writes it: NAME=URL.
func (e Endpoint) String() string { return e.Job + "=" + e.URL.String() }

// secure is the prefix of a target that is scraped over TLS.
const secure = "https://"

func targetsKey() *key {
	return &key{
		name: "targets", commands: Up | Server, kind: "host:port,...", sep: ",", flagSep: true,
		usage: "agents to scrape; https://host:port for one with TLS",
		def:   none,
		set: func(c *Config, values []string) error {
			seen := make(map[string]bool, len(values))
			c.Targets = values
			return inEach(values, func(s string) error {
				address := strings.TrimPrefix(s, secure)
				err := checkHostPort(address)
				if err == nil && seen[address] {
					err = fmt.Errorf("%q is listed twice", s)
				}
				seen[address] = true
				return err
			})
		},
		get: func(c *Config) []string { return c.Targets },
	}
}

func targetsConfigFileKey() *key {
	return fileKey("targets-config-file", "TLS and credentials for the agents of targets, in the format of Prometheus' http_config",
		func(c *Config) *string { return &c.TargetsConfigFile })
}

func scrapeConfigFileKey() *key {
	return &key{
		name: "scrape-config-file", commands: Up | Server, kind: "name=file", sep: ";",
		usage: "TLS and credentials for the application of that name in scrape, in the format of Prometheus' http_config; may be repeated",
		def:   none,
		set: func(c *Config, values []string) error {
			seen := map[string]bool{}
			c.ScrapeConfigFiles = values
			return inEach(values, func(s string) error {
				name, file, _ := strings.Cut(s, "=")
				switch {
				case name == "" || file == "":
					return fmt.Errorf("%q is not NAME=FILE: use for example redis=/etc/teescope/redis.yml", s)
				case seen[name]:
					return fmt.Errorf("%q: %s has a file already", s, name)
				}
				seen[name] = true
				return nil
			})
		},
		get: func(c *Config) []string { return c.ScrapeConfigFiles },
	}
}

// ScrapeConfigFile returns the file with the HTTP client configuration of an endpoint, or "".
func (c *Config) ScrapeConfigFile(job string) string {
	for _, s := range c.ScrapeConfigFiles {
		if name, file, _ := strings.Cut(s, "="); name == job {
			return file
		}
	}
	return ""
}

// parseEndpoint parses [NAME=]URL. A URL without a path means /metrics, as in Prometheus.
func parseEndpoint(s string) (Endpoint, error) {
	bad := func(why string) (Endpoint, error) {
		return Endpoint{}, fmt.Errorf("%q: %s (use NAME=http://host:port/metrics)", text.WithoutPassword(s), why)
	}
	job, address := defaultJob, s
	if name, rest, found := strings.Cut(s, "="); found && !strings.Contains(name, "/") {
		job, address = name, rest
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return bad(errors.Unwrap(err).Error())
	case job == "" || job == jobOfAgents:
		return bad("the name is empty or reserved")
	case u.Scheme != "http" && u.Scheme != "https":
		return bad("not an http or https URL")
	case u.Hostname() == "":
		return bad("no host")
	case u.Port() != "" && checkPort(u.Port(), 1) != nil:
		return bad(checkPort(u.Port(), 1).Error())
	case u.User != nil:
		return bad("a password in a URL ends up in logs; put it into a file for scrape-config-file")
	}
	if u.Path == "" {
		u.Path = "/metrics"
	}
	u.Fragment = ""
	return Endpoint{Job: job, URL: u}, nil
}

// jobOfAgents is the label job of teescope's own series.
const jobOfAgents = "teescope"

func scrapeKey() *key {
	return &key{
		name: "scrape", commands: Up | Server, kind: "[name=]url", sep: ";",
		usage: "also scrape the metrics of an application or exporter; name becomes the label job; may be repeated",
		def:   none,
		set: func(c *Config, values []string) error {
			var errs []error
			c.Scrape = nil
			for _, v := range values {
				e, err := parseEndpoint(v)
				if err == nil && slices.ContainsFunc(c.Scrape, func(o Endpoint) bool { return o.URL.String() == e.URL.String() }) {
					err = fmt.Errorf("%q is given twice", v)
				}
				if err != nil {
					errs = append(errs, err)
					continue
				}
				c.Scrape = append(c.Scrape, e)
			}
			return errors.Join(errs...)
		},
		get: func(c *Config) []string {
			var texts []string
			for _, e := range c.Scrape {
				texts = append(texts, e.String())
			}
			return texts
		},
	}
}
