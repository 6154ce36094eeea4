// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// Probes are the user's own probes.
type Probes struct {
	File string // empty: there are none
}

func probeKeys() []*key { return []*key{probesFileKey()} }

func probesFileKey() *key {
	return &key{
		name: "probes.file", commands: Up | Agent, kind: "file",
		usage: "YAML file with your own probes: tracepoints, functions and USDT probes that are counted by workload", defText: "none",
		def: constant(""),
		set: func(c *Config, values []string) error { c.Probes.File = strings.Join(values, ""); return nil },
		get: func(c *Config) []string { return []string{c.Probes.File} },
	}
}
