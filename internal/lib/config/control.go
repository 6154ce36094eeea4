// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strconv"
	"time"
)

// Control configures what can be switched on while an agent runs.
type Control struct {
	Enabled     bool          // changes are accepted
	MaxDuration time.Duration // longest time for which something is switched on
}

func controlKeys() []*key { return []*key{controlEnabledKey(), controlMaxDurationKey()} }

func controlEnabledKey() *key {
	return &key{
		name: "control.enabled", commands: Up | Agent, kind: "bool",
		usage: "let \"teescope control\" and the API switch watching, timing, exact counting and profiles on for a limited time (needs memory)",
		def:   constant("false"),
		set: one(func(c *Config, s string) (err error) {
			c.Control.Enabled, err = parseBool(s)
			return err
		}),
		get: func(c *Config) []string { return []string{strconv.FormatBool(c.Control.Enabled)} },
	}
}

func controlMaxDurationKey() *key {
	return &key{
		name: "control.max-duration", commands: Up | Agent, kind: "duration",
		usage: "longest time for which something can be switched on while the agent runs",
		def:   constant("1h"),
		set: one(func(c *Config, s string) (err error) {
			c.Control.MaxDuration, err = parseDuration(s, time.Second, 24*time.Hour)
			return err
		}),
		get: func(c *Config) []string { return []string{formatDuration(c.Control.MaxDuration)} },
	}
}
