// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/teescope/teescope/internal/lib/text"
)

// RemoteWrite is where stored samples are sent too.
type RemoteWrite struct {
	URLs       []*url.URL
	ConfigFile string
	Labels     map[string]string // added to each series
	V2         bool              // version 2.0 of the protocol; otherwise 1.0
}

func remoteWriteKeys() []*key {
	return []*key{
		{
			name: "remote-write.urls", commands: Up | Server, kind: "url,...", sep: ",", flagSep: true,
			usage: "also send all samples to these receivers of Prometheus' remote write",
			def:   none,
			set: func(c *Config, values []string) error {
				c.RemoteWrite.URLs = nil
				var errs []error
				for _, v := range values {
					u, err := parseReceiver(v, "http://host:9090/api/v1/write")
					if err == nil && slices.ContainsFunc(c.RemoteWrite.URLs, func(o *url.URL) bool { return o.String() == u.String() }) {
						err = fmt.Errorf("%q is given twice", v)
					}
					if errs = append(errs, err); err == nil {
						c.RemoteWrite.URLs = append(c.RemoteWrite.URLs, u)
					}
				}
				return errors.Join(errs...)
			},
			get: func(c *Config) []string {
				var texts []string
				for _, u := range c.RemoteWrite.URLs {
					texts = append(texts, u.String())
				}
				return texts
			},
		},
		fileKey("remote-write.config-file", "TLS and credentials for receivers of remote write, in the format of Prometheus' http_config",
			func(c *Config) *string { return &c.RemoteWrite.ConfigFile }),
		remoteWriteLabelsKey(),
		remoteWriteProtocolKey(),
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
	versions := []string{"1.0", "2.0"}
	return &key{
		name: "remote-write.protocol", commands: Up | Server, kind: "version",
		usage: "version of the protocol of remote write: 1.0 or 2.0",
		def:   constant("1.0"),
		set: one(func(c *Config, s string) error {
			c.RemoteWrite.V2 = s == versions[1]
			return checkChoice(s, versions)
		}),
		get: func(c *Config) []string {
			if c.RemoteWrite.V2 {
				return versions[1:]
			}
			return versions[:1]
		},
	}
}
