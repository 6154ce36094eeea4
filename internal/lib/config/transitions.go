// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Transitions bounds the cost of counting entries into enclaves.
type Transitions struct {
	Trace  string // "auto", "on" or "off"
	Budget int    // probe hits per second
	Cost   Cost   // cost of a crossing on this machine; zero when not configured
}

// Cost is the cost of one event, as a range.
type Cost struct{ Low, High time.Duration }

func transitionKeys() []*key {
	return []*key{transitionsTraceKey(), transitionsBudgetKey(), transitionsCostKey()}
}

func transitionsTraceKey() *key {
	modes := []string{"auto", "on", "off"}
	return &key{
		name: "transitions.trace", commands: Up | Agent, kind: "mode",
		usage: "count calls into and out of enclaves: auto (within the budget), on (at any cost) or off",
		def:   constant("auto"),
		set: one(func(c *Config, s string) error {
			if err := checkChoice(s, modes); err != nil {
				return err
			}
			c.Transitions.Trace = s
			return nil
		}),
		get: func(c *Config) []string { return []string{c.Transitions.Trace} },
	}
}

func transitionsBudgetKey() *key {
	return &key{
		name: "transitions.budget", commands: Up | Agent, kind: "number",
		usage: "maximum number of calls into and out of enclaves per second that are counted; above it they are sampled",
		def:   constant("10000"),
		set: one(func(c *Config, s string) (err error) {
			c.Transitions.Budget, err = parseInt(s, 100, 1_000_000)
			return err
		}),
		get: func(c *Config) []string { return []string{strconv.Itoa(c.Transitions.Budget)} },
	}
}

func transitionsCostKey() *key {
	return &key{
		name: "transitions.cost", commands: Up | Agent, kind: "time",
		usage:   "measured cost of leaving and entering an enclave once on this machine: 4us or 3us-5us",
		defText: "8,000 to 14,000 cycles",
		def:     constant(""),
		set: func(c *Config, values []string) (err error) {
			c.Transitions.Cost, err = parseCost(strings.Join(values, ""))
			return err
		},
		get: func(c *Config) []string { return []string{c.Transitions.Cost.String()} },
	}
}

// Bounds of the cost of a crossing.
const (
	minCost = 10 * time.Nanosecond
	maxCost = 10 * time.Millisecond
)

// parseCost parses a time or a range of times. An empty text is the zero value.
func parseCost(s string) (Cost, error) {
	if strings.TrimSpace(s) == "" {
		return Cost{}, nil
	}
	first, second, isRange := strings.Cut(s, "-")
	if !isRange {
		second = first
	}
	low, errLow := time.ParseDuration(strings.TrimSpace(first))
	high, errHigh := time.ParseDuration(strings.TrimSpace(second))
	switch {
	case errLow != nil || errHigh != nil:
		return Cost{}, fmt.Errorf("%q is neither a time nor a range: use for example 4us or 3us-5us", s)
	case low > high:
		return Cost{}, fmt.Errorf("%q starts with its larger bound: use %s-%s", s, formatTime(high), formatTime(low))
	case low < minCost || high > maxCost:
		return Cost{}, fmt.Errorf("%q is out of range: use %s to %s", s, formatTime(minCost), formatTime(maxCost))
	}
	return Cost{low, high}, nil
}

// String returns the range as a user writes it.
func (c Cost) String() string {
	switch {
	case c == Cost{}:
		return ""
	case c.Low == c.High:
		return formatTime(c.Low)
	}
	return formatTime(c.Low) + "-" + formatTime(c.High)
}

// formatTime formats a short time with characters that every keyboard has.
func formatTime(d time.Duration) string { return strings.ReplaceAll(d.String(), "µs", "us") }
