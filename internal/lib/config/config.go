// SPDX-License-Identifier: Apache-2.0

// Package config reads defaults, a YAML file, the environment and command line flags, each of which overrides those
// before it, and returns one checked configuration.
//
// One table of keys (keys.go) defines all four sources and the output of "teescope config". Unknown keys and bad values are
// errors. All problems are reported together, with the file and line, the variable or the flag they come from. The package
// does not read anything else. Whether an address can be listened on, or a directory can be written to, is checked
// elsewhere.
package config

import (
	"slices"
	"strings"
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

// origin is the source of a value.
type origin struct {
	Kind string // "default", "file", "env" or "flag"
	At   string // FILE:LINE, the variable, or the flag
}

// String returns the origin as it appears in problems and in the output of [Config.Write].
func (o origin) String() string {
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
