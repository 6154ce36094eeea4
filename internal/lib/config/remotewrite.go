// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/teescope/teescope/internal/lib/text"
)

// RemoteWrite is where stored samples are sent too.
type RemoteWrite struct {
	URLs       []*url.URL
	ConfigFile string
	Labels     map[string]string // added to each series
	Protocol   string            // 1.0, 2.0 or otlp
	Only       bool              // keep no database
}

// otlp is the protocol of OpenTelemetry.
const otlp = "otlp"

// maxReceivers is the maximum number of receivers. Each has queues of its own.
const maxReceivers = 8

func remoteWriteKeys() []*key {
	return []*key{
		{
			name: "remote-write.urls", commands: Up | Server, kind: "url,...", sep: ",", flagSep: true,
			usage: "also send all samples to these receivers of Prometheus' remote write",
			def:   none,
			set: func(c *Config, values []string) (err error) {
				if c.RemoteWrite.URLs = nil; len(values) > maxReceivers {
					return fmt.Errorf("%d values; the maximum is %d", len(values), maxReceivers)
				}
				c.RemoteWrite.URLs, err = parseReceivers(values, "http://host:9090/api/v1/write")
				return err
			},
			get: func(c *Config) []string { return urlTexts(c.RemoteWrite.URLs) },
		},
		fileKey("remote-write.config-file", "TLS and credentials for receivers of remote write, in the format of Prometheus' http_config",
			func(c *Config) *string { return &c.RemoteWrite.ConfigFile }),
		remoteWriteLabelsKey(),
		remoteWriteProtocolKey(),
		{
			name: "remote-write.only", commands: Up | Server, kind: "bool",
			usage: "keep no database: samples wait on disk until the receivers have them, within retention.size and retention.time",
			def:   constant("false"),
			set: one(func(c *Config, s string) (err error) {
				c.RemoteWrite.Only, err = parseBool(s)
				return err
			}),
			get: func(c *Config) []string { return []string{strconv.FormatBool(c.RemoteWrite.Only)} },
		},
	}
}

// withoutPage reports keys that a process with remote-write.only cannot have, and a protocol that only such a process
// can have.
func (l *loader) withoutPage() {
	r := l.cfg.RemoteWrite
	if !r.Only {
		if r.Protocol == otlp {
			l.problem(l.cfg.origins["remote-write.protocol"], "remote-write.protocol", "otlp needs remote-write.only: true; with a database use 1.0 or 2.0")
		}
		return
	}
	if len(r.URLs) == 0 && !l.has("remote-write.urls") {
		l.problem(l.cfg.origins["remote-write.only"], "remote-write.only", "there is no receiver: set remote-write.urls too")
	}
	for _, name := range []string{"query.url", "scrape", "rules.files", "alerting.alertmanagers", "alerting.webhooks"} {
		if name == "query.url" && l.in.Command != Server {
			continue // up does not use it
		}
		if o := l.cfg.origins[name]; o.Kind != "default" {
			l.problem(o, name, "a process with remote-write.only has no database and sends the metrics of agents only: leave it out")
		}
	}
}

func remoteWriteLabelsKey() *key {
	return &key{
		name: "remote-write.labels", commands: Up | Server, kind: "name=value,...", sep: ",", flagSep: true,
		usage: "labels for all sent series, such as cluster=eu, so that several servers can send to one receiver",
		def:   none,
		set: func(c *Config, values []string) error {
			c.RemoteWrite.Labels = map[string]string{}
			return inEach(values, func(s string) error {
				name, value, _ := strings.Cut(s, "=")
				if !model.LegacyValidation.IsValidLabelName(name) || strings.HasPrefix(name, model.ReservedLabelPrefix) || value == "" {
					return fmt.Errorf("%q is not NAME=VALUE: use for example cluster=eu", text.WithoutPassword(s))
				}
				if _, twice := c.RemoteWrite.Labels[name]; twice {
					return fmt.Errorf("%s is given twice", name)
				}
				c.RemoteWrite.Labels[name] = value
				return nil
			})
		},
		get: func(c *Config) []string {
			var texts []string
			for name, value := range c.RemoteWrite.Labels {
				texts = append(texts, name+"="+value)
			}
			slices.Sort(texts)
			return texts
		},
	}
}

func remoteWriteProtocolKey() *key {
	versions := []string{"1.0", "2.0", otlp}
	return &key{
		name: "remote-write.protocol", commands: Up | Server, kind: "version",
		usage: "protocol of the receivers: 1.0 or 2.0 of remote write, or otlp with remote-write.only",
		def:   constant("1.0"),
		set: one(func(c *Config, s string) error {
			c.RemoteWrite.Protocol = s
			return checkChoice(s, versions)
		}),
		get: func(c *Config) []string {
			return []string{c.RemoteWrite.Protocol}
		},
	}
}
