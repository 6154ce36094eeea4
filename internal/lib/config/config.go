// SPDX-License-Identifier: Apache-2.0

// Package config turns defaults, a YAML file, the environment and command line flags, each stronger
// than the one before, into one checked configuration.
//
// One table of keys (keys.go) drives all four and the output of "teescope config". Unknown keys and
// bad values are errors, and every problem is reported at once, with the file and line, the variable
// or the flag it comes from. The package refuses to read anything but configuration: whether an
// address can be listened on or a directory written to is for those who do it.
package config

import (
	"log/slog"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/watch"
)

// Command says which subcommand a configuration is for. A key that a command does not use may still
// stand in the file, so that one file serves all commands, but it has no flag there.
type Command uint

// The commands.
const (
	Up Command = 1 << iota
	Agent
	Server
	// Any is what "teescope config" shows: every key.
	Any = Up | Agent | Server
)

// Config is a checked configuration.
type Config struct {
	Listen string // host:port
	// WebConfigFile configures TLS and basic authentication, in the format of the Prometheus exporter toolkit.
	WebConfigFile string
	ExternalURL   string        // without a slash at its end; empty is where it listens
	DataDir       string        // absolute
	Interval      time.Duration // between two scrapes
	Retention     Retention
	Targets       []string // host:port
	Scrape        []Endpoint
	Workloads     Workloads
	Watch         []watch.Rule
	Syscalls      Syscalls
	Overhead      Overhead
	Transitions   Transitions
	Memory        Memory
	Analysis      Analysis
	Rules         Rules
	Alerting      Alerting
	Log           Log

	origins map[string]Origin
}

// Retention bounds what the database keeps. The stricter of the two holds.
type Retention struct {
	Time time.Duration
	Size int64 // bytes; 0 is unlimited
}

// Workloads bounds the label workload.
type Workloads struct {
	Max int
}

// Syscalls selects what is measured of system calls.
type Syscalls struct {
	Time bool // also measure the time spent in each
}

// Overhead bounds what watching costs.
type Overhead struct {
	Budget float64 // share of the machine's CPU time, 0 to 1
}

// Transitions bounds what counting entries into enclaves may cost.
type Transitions struct {
	Trace  string // "auto", "on" or "off"
	Budget int    // hits of probes a second
	Cost   Cost   // what a crossing costs here; zero where nobody has said it
}

// Cost is what one event costs, as a range.
type Cost struct{ Low, High time.Duration }

// Memory bounds what the process uses.
type Memory struct {
	Limit int64 // bytes; 0 is unlimited
}

// Log is how the program logs.
type Log struct {
	Level  slog.Level
	Format string // "text" or "json"
}

// Origin says where a value comes from.
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

// Origin says where the value of a key comes from.
func (c *Config) Origin(key string) Origin { return c.origins[key] }

// Values returns every key with its value as one would write it; lists are separated by commas.
func (c *Config) Values() map[string]string {
	out := map[string]string{}
	for _, k := range keys() {
		out[k.name] = strings.Join(k.get(c), ",")
	}
	return out
}

// Host is what the defaults depend on.
type Host struct {
	UID       int
	Home      string // may be empty
	StateHome string // $XDG_STATE_HOME; may be empty
}
