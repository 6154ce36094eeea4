// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strconv"
	"time"
)

// Analysis configures when and how stored series are analysed.
type Analysis struct {
	Enabled  bool
	Interval time.Duration // between two analyses
	Window   time.Duration // the period that each analysis covers
	// Thresholds replace those of rules, in the form that [Input].CheckThreshold accepts. The last one that applies
	// counts.
	Thresholds []string
}

func analysisKeys() []*key {
	return []*key{analysisEnabledKey(), analysisIntervalKey(), analysisWindowKey(), analysisThresholdsKey()}
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

func analysisThresholdsKey() *key {
	return &key{
		name: thresholdsKey, commands: Up | Server, kind: "rule.name=value...", sep: ";",
		usage: "replace a threshold of a rule, for the workloads that match: lock-contention.calls=5000 workload=~redis-.*; may be repeated",
		def:   none,
		set: func(c *Config, values []string) error {
			c.Analysis.Thresholds = values
			if len(values) > maxThresholds {
				return fmt.Errorf("%d thresholds; the maximum is %d", len(values), maxThresholds)
			}
			return nil
		},
		get: func(c *Config) []string { return c.Analysis.Thresholds },
	}
}

const (
	thresholdsKey = "analysis.thresholds"
	maxThresholds = 200
)
