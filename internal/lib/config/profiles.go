// SPDX-License-Identifier: Apache-2.0

package config

import "strconv"

// Profiles configures the samples of stacks.
type Profiles struct {
	Enabled bool // takes samples all the time
}

func profileKeys() []*key { return []*key{profilesEnabledKey()} }

func profilesEnabledKey() *key {
	return &key{
		name: "profiles.enabled", commands: Up | Agent, kind: "bool",
		usage: "take samples of the stacks of all processes, 19 times a second and CPU, and keep a profile of each minute (needs memory)",
		def:   constant("false"),
		set: one(func(c *Config, s string) (err error) {
			c.Profiles.Enabled, err = parseBool(s)
			return err
		}),
		get: func(c *Config) []string { return []string{strconv.FormatBool(c.Profiles.Enabled)} },
	}
}
