// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strconv"
	"time"
)

// Analysis configures when and how stored series are analysed.
type Analysis struct {
	Enabled  bool
	Interval time.Duration // between two analyses
	Window   time.Duration // the period that each analysis covers
}

func analysisEnabledKey() *key {
	return &key{
		name: "analysis.enabled", commands: Up | Server, kind: "bool",
		usage: "look for causes that slow workloads down, and store the findings",
		def:   constant("true"),
		set: one(func(c *Config, s string) (err error) {
			c.Analysis.Enabled, err = parseBool(s)
			return err
		}),
		get: func(c *Config) []string { return []string{strconv.FormatBool(c.Analysis.Enabled)} },
	}
}

func analysisIntervalKey() *key {
	return &key{
		name: "analysis.interval", commands: Up | Server, kind: "duration",
		usage: "time between two analyses",
		def:   constant("1m"),
		set: one(func(c *Config, s string) (err error) {
			c.Analysis.Interval, err = parseDuration(s, time.Second, time.Hour)
			return err
		}),
		get: func(c *Config) []string { return []string{formatDuration(c.Analysis.Interval)} },
	}
}

func analysisWindowKey() *key {
	return &key{
		name: "analysis.window", commands: Up | Server, kind: "duration",
		usage: "time range of each analysis",
		def:   constant("5m"),
		set: one(func(c *Config, s string) (err error) {
			c.Analysis.Window, err = parseDuration(s, 10*time.Second, 24*time.Hour)
			return err
		}),
		get: func(c *Config) []string { return []string{formatDuration(c.Analysis.Window)} },
	}
}
