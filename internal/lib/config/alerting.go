// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/text"
)

// Rules configures which rules are evaluated.
type Rules struct {
	Files    []string // patterns of file names
	Default  bool     // whether to use those that come with the program
	Interval time.Duration
}

// Alerting configures where alerts are sent.
type Alerting struct {
	Alertmanagers          []*url.URL
	AlertmanagerConfigFile string
	Webhooks               []string // URLs, and file:NAME for files that contain one
	WebhookConfigFile      string
}

// webhookFile is the prefix of a webhook whose URL is in a file because it is a secret.
const webhookFile = "file:"

// WebhookFile returns the name of the file with a webhook's URL. It reports whether the URL is in a file.
func WebhookFile(webhook string) (name string, found bool) {
	return strings.CutPrefix(webhook, webhookFile)
}

// shownWebhook returns a webhook without the part of its URL that may be a secret.
func shownWebhook(webhook string) string {
	u, err := url.Parse(webhook)
	if err != nil || u.Host == "" {
		return webhook // a file
	}
	return u.Scheme + "://" + u.Host + "/..."
}

func rulesKeys() []*key {
	return []*key{
		{
			name: "rules.files", commands: Up | Server, kind: "pattern", sep: ";",
			usage: "file with alerting and recording rules in Prometheus' format, or a pattern; may be repeated",
			def:   none,
			set: func(c *Config, values []string) error {
				c.Rules.Files = values
				return nil
			},
			get: func(c *Config) []string { return c.Rules.Files },
		},
		{
			name: "rules.default", commands: Up | Server, kind: "bool",
			usage: "also evaluate the rules that come with teescope",
			def:   constant("true"),
			set: one(func(c *Config, s string) (err error) {
				c.Rules.Default, err = parseBool(s)
				return err
			}),
			get: func(c *Config) []string { return []string{strconv.FormatBool(c.Rules.Default)} },
		},
		{
			name: "rules.interval", commands: Up | Server, kind: "duration",
			usage: "evaluation interval of rule groups that set none",
			def:   constant("15s"),
			set: one(func(c *Config, s string) (err error) {
				c.Rules.Interval, err = parseDuration(s, 100*time.Millisecond, time.Hour)
				return err
			}),
			get: func(c *Config) []string { return []string{formatDuration(c.Rules.Interval)} },
		},
	}
}

func alertingKeys() []*key {
	return []*key{
		{
			name: "alerting.alertmanagers", commands: Up | Server, kind: "url", sep: ";",
			usage: "Alertmanager to send alerts to; may be repeated",
			def:   none,
			set: func(c *Config, values []string) (err error) {
				c.Alerting.Alertmanagers, err = parseReceivers(values, "http://alertmanager:9093")
				return err
			},
			get: func(c *Config) []string { return urlTexts(c.Alerting.Alertmanagers) },
		},
		fileKey("alerting.alertmanager-config-file", "TLS and credentials for Alertmanagers, in the format of Prometheus' http_config",
			func(c *Config) *string { return &c.Alerting.AlertmanagerConfigFile }),
		{
			name: "alerting.webhooks", commands: Up | Server, kind: "url", sep: ";",
			usage: "webhook to send alerts to, in the format of Alertmanager's webhooks; file:NAME reads a secret URL from a file; may be repeated",
			def:   none,
			set: func(c *Config, values []string) error {
				c.Alerting.Webhooks = nil
				return inEach(values, func(s string) error {
					var err error
					if name, ok := WebhookFile(s); !ok {
						_, err = parseReceiver(s, "http://host:port/path")
					} else if name == "" {
						err = fmt.Errorf("%q names no file: use for example file:/etc/teescope/webhook", s)
					}
					if err == nil && slices.Contains(c.Alerting.Webhooks, s) {
						err = fmt.Errorf("%q is given twice", shownWebhook(s))
					}
					if err == nil {
						c.Alerting.Webhooks = append(c.Alerting.Webhooks, s)
					}
					return err
				})
			},
			get: func(c *Config) []string { return c.Alerting.Webhooks },
		},
		fileKey("alerting.webhook-config-file", "TLS and credentials for webhooks, in the format of Prometheus' http_config",
			func(c *Config) *string { return &c.Alerting.WebhookConfigFile }),
	}
}

// fileKey returns the key of an optional file.
func fileKey(name, usage string, at func(*Config) *string) *key {
	return &key{
		name: name, commands: Up | Server, kind: "file", usage: usage, defText: "none",
		def: constant(""),
		set: func(c *Config, values []string) error { *at(c) = strings.Join(values, ""); return nil },
		get: func(c *Config) []string { return []string{*at(c)} },
	}
}

// inEach checks each value and joins the errors.
func inEach(values []string, check func(string) error) error {
	var errs []error
	for _, v := range values {
		if err := check(v); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// parseReceivers parses the URLs of different receivers.
func parseReceivers(values []string, example string) (all []*url.URL, err error) {
	err = inEach(values, func(s string) error {
		u, err := parseReceiver(s, example)
		if err == nil && slices.ContainsFunc(all, func(o *url.URL) bool { return o.String() == u.String() }) {
			err = fmt.Errorf("%q is given twice", s)
		}
		if err == nil {
			all = append(all, u)
		}
		return err
	})
	return all, err
}

func urlTexts(all []*url.URL) []string {
	var texts []string
	for _, u := range all {
		texts = append(texts, u.String())
	}
	return texts
}

// parseReceiver parses the URL of a receiver of alerts or samples.
func parseReceiver(s, example string) (*url.URL, error) {
	u, err := url.Parse(s)
	why := ""
	switch {
	case err != nil:
		why = errors.Unwrap(err).Error()
	case u.Scheme != "http" && u.Scheme != "https":
		why = "not an http or https URL"
	case u.Hostname() == "":
		why = "no host"
	case u.Port() != "" && checkPort(u.Port(), 1) != nil:
		why = checkPort(u.Port(), 1).Error()
	case u.User != nil:
		why = "a password in a URL ends up in logs; put it into the file with credentials"
	}
	if why != "" {
		return nil, fmt.Errorf("%q: %s (use for example %s)", text.WithoutPassword(s), why, example)
	}
	return u, nil
}
