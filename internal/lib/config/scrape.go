// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
)

// secure is the prefix of a target that is scraped over TLS.
const secure = "https://"

func targetKeys() []*key { return []*key{targetsKey(), targetsConfigFileKey()} }

func scrapeKeys() []*key { return []*key{scrapeKey(), scrapeConfigFileKey()} }

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
	return &key{
		name: "targets-config-file", commands: Up | Server, kind: "[pattern=]file", sep: ";",
		usage: "TLS and credentials for the agents of targets whose host:port matches the pattern, or for all others, in the format of Prometheus' http_config; may be repeated",
		def:   none,
		set: func(c *Config, values []string) error {
			seen := map[string]bool{}
			c.TargetsConfigFiles = values
			return inEach(values, func(s string) error {
				pattern, file := cutPattern(s)
				_, err := path.Match(pattern, "")
				switch {
				case file == "" || strings.HasPrefix(s, "=") || err != nil:
					return fmt.Errorf("%q is not [PATTERN=]FILE: use for example *.rack1:9750=/etc/teescope/rack1.yml", s)
				case seen[pattern] && pattern == "":
					return fmt.Errorf("%q: all agents without a pattern have a file already", s)
				case seen[pattern]:
					return fmt.Errorf("%q: %s has a file already", s, pattern)
				}
				seen[pattern] = true
				return nil
			})
		},
		get: func(c *Config) []string { return c.TargetsConfigFiles },
	}
}

// cutPattern divides [PATTERN=]FILE. A host:port contains no slash, so a text with a slash before "=" is the name of a
// file.
func cutPattern(s string) (pattern, file string) {
	if before, after, found := strings.Cut(s, "="); found && !strings.Contains(before, "/") {
		return before, after
	}
	return "", s
}

// TargetsConfigFile returns the patterns and files of TargetsConfigFiles in their order. The pattern of the file for all
// other agents is empty.
func (c *Config) TargetsConfigFile() iter.Seq2[string, string] {
	return func(yield func(pattern, file string) bool) {
		for _, s := range c.TargetsConfigFiles {
			if !yield(cutPattern(s)) {
				return
			}
		}
	}
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

func scrapeKey() *key {
	return &key{
		name: "scrape", commands: Up | Server, kind: "[name=]url...", sep: ";",
		usage: "also scrape the metrics of an application or exporter; name becomes the label job; " +
			"workload=NAME operations=COUNTER latency=HISTOGRAM after the URL assign them to a workload; may be repeated",
		def: none, fields: endpointFields(), item: endpointText,
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
