// SPDX-License-Identifier: Apache-2.0

// Package config reads defaults, a YAML file, the environment and command line flags, each of which overrides those
// before it, and returns one checked configuration.
//
// One table of keys (keys.go) defines all four sources and the output of "teescope config". Unknown keys and bad values
// are errors. All problems are reported together, with the file and line, the variable or the flag they come from. The
// package refuses to read anything else. Whether an address can be listened on, or a directory can be written to, is
// checked elsewhere.
package config

import (
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/watch"
)

// Command is the subcommand that a configuration is for. The file may contain keys that the command does not use, so
// that one file serves all commands. Such a key has no flag there.
type Command uint

// The commands.
const (
	Up Command = 1 << iota
	Agent
	Server
	// Any is the command "teescope config", which shows every key.
	Any = Up | Agent | Server
)

// Config is a checked configuration.
type Config struct {
	Listen string // host:port, or unix:PATH
	// WebConfigFile configures TLS and basic authentication, in the format of the Prometheus exporter toolkit.
	WebConfigFile string
	Web           Web
	ExternalURL   string        // without a slash at its end; empty for the listening address
	DataDir       string        // absolute
	Interval      time.Duration // between two scrapes
	Retention     Retention
	Targets       []string // host:port, or https://host:port
	// TargetsConfigFiles configure the HTTP clients for Targets and for agents that are found: FILE or PATTERN=FILE, in the
	// format of Prometheus' http_config.
	TargetsConfigFiles []string
	Discovery          []Discovery
	// DiscoveryConfigFile configures the HTTP client for sources of Discovery, in the same format.
	DiscoveryConfigFile string
	Kubernetes          Kubernetes
	RemoteWrite         RemoteWrite
	Query               Query
	Scrape              []Endpoint
	// ScrapeConfigFiles are the same for endpoints, as NAME=FILE.
	ScrapeConfigFiles []string
	Workloads         Workloads
	Watch             []watch.Rule
	Syscalls          Syscalls
	Overhead          Overhead
	Probes            Probes
	Control           Control
	Profiles          Profiles
	Transitions       Transitions
	Memory            Memory
	Analysis          Analysis
	Rules             Rules
	Alerting          Alerting
	// AnyPIDNamespace lets an agent start where it does not see all processes of the host.
	AnyPIDNamespace bool
	Sandbox         Sandbox
	Log             Log
	// Ignored are the environment variables that look like keys and that Kubernetes has set for a Service.
	Ignored []string

	origins map[string]Origin
}

// Origin is the source of a value.
type Origin struct {
	Kind string // "default", "file", "env" or "flag"
	At   string // FILE:LINE, the variable, or the flag
}

// String returns the origin as it appears in problems and in the output of [Config.Write].
func (o Origin) String() string {
	if o.Kind == "default" {
		return o.Kind
	}
	return o.Kind + " " + o.At
}

// Values returns every key with its value as a user writes it, for others to see. Lists are separated by commas. The
// path and the parameters of a webhook are often a secret, and parameters of other URLs can be.
func (c *Config) Values() map[string]string {
	out := map[string]string{}
	for _, k := range keys() {
		values := slices.Clone(k.get(c))
		for i, v := range values {
			switch k.name {
			case "alerting.webhooks":
				values[i] = shownWebhook(v)
			case "scrape", "alerting.alertmanagers", "discovery", "remote-write.urls":
				values[i], _, _ = strings.Cut(v, "?")
			}
		}
		out[k.name] = strings.Join(values, ",")
	}
	return out
}

// Host holds the properties of the host that defaults depend on.
type Host struct {
	UID       int
	Home      string // may be empty
	StateHome string // $XDG_STATE_HOME; may be empty
}
