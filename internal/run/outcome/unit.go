// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// scale converts a unit to its base unit.
type scale struct {
	base   string
	factor float64
}

// scales are the units of regular expressions and of custom metrics. Units of bytes are decimal if they do not have an "i".
var scales = map[string]scale{
	"s": {Seconds, 1}, "sec": {Seconds, 1}, "secs": {Seconds, 1}, "second": {Seconds, 1}, "seconds": {Seconds, 1},
	"ms": {Seconds, 1e-3}, "msec": {Seconds, 1e-3}, "milliseconds": {Seconds, 1e-3},
	"us": {Seconds, 1e-6}, "µs": {Seconds, 1e-6}, "μs": {Seconds, 1e-6}, "usec": {Seconds, 1e-6}, "microseconds": {Seconds, 1e-6},
	"ns": {Seconds, 1e-9}, "nsec": {Seconds, 1e-9}, "nanoseconds": {Seconds, 1e-9},
	"min": {Seconds, 60}, "minutes": {Seconds, 60}, "h": {Seconds, 3600}, "hours": {Seconds, 3600},

	"ops/s": {OperationsPerSecond, 1}, "op/s": {OperationsPerSecond, 1}, "req/s": {OperationsPerSecond, 1}, "requests/s": {OperationsPerSecond, 1},
	"ops/sec": {OperationsPerSecond, 1}, "req/sec": {OperationsPerSecond, 1}, "requests/sec": {OperationsPerSecond, 1},
	"rps": {OperationsPerSecond, 1}, "qps": {OperationsPerSecond, 1}, "tps": {OperationsPerSecond, 1}, "iops": {OperationsPerSecond, 1},
	"kops/s": {OperationsPerSecond, 1e3}, "Mops/s": {OperationsPerSecond, 1e6}, "/s": {OperationsPerSecond, 1},

	"B": {Bytes, 1}, "bytes": {Bytes, 1}, "kB": {Bytes, 1e3}, "KB": {Bytes, 1e3}, "MB": {Bytes, 1e6}, "GB": {Bytes, 1e9}, "TB": {Bytes, 1e12},
	"KiB": {Bytes, 1 << 10}, "MiB": {Bytes, 1 << 20}, "GiB": {Bytes, 1 << 30}, "TiB": {Bytes, 1 << 40},
	"B/s": {BytesPerSecond, 1}, "kB/s": {BytesPerSecond, 1e3}, "KB/s": {BytesPerSecond, 1e3}, "MB/s": {BytesPerSecond, 1e6}, "GB/s": {BytesPerSecond, 1e9},
	"KiB/s": {BytesPerSecond, 1 << 10}, "MiB/s": {BytesPerSecond, 1 << 20}, "GiB/s": {BytesPerSecond, 1 << 30},

	"%": {Ratio, 0.01}, "percent": {Ratio, 0.01},
}

// direction returns which values are better: by the unit, and by the words of the name where the unit does not say.
func direction(name, unit string) Direction { return DirectionOf(name, unit) }

// DirectionOf returns which values are better by the unit of an outcome, or the words of its name.
func DirectionOf(name, unit string) Direction {
	switch unit {
	case OperationsPerSecond, BytesPerSecond:
		return Higher
	case Seconds, Errors, Bytes, bytesPerOperation, allocationsPerOperation:
		return Lower
	case Operations:
		return Neither
	}
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("_.-:/", r) })
	has := func(any ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(any, w) })
	}
	switch {
	case has("latency", "time", "duration", "delay", "wait", "error", "errors", "failed", "failures", "miss", "misses", "timeouts", "cost", "overhead"):
		return Lower
	case has("throughput", "rps", "qps", "tps", "ops", "iops", "hit", "hits", "score", "speed", "bandwidth"):
		return Higher
	}
	return Neither
}

// number parses a finite number. Groups of three digits may be separated by commas.
func number(s string) (float64, bool) {
	if strings.Contains(s, ",") {
		var ok bool
		if s, ok = ungrouped(s); !ok {
			return 0, false
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) && !strings.ContainsAny(s, "xX_")
}

// ungrouped removes the commas of 1,234,567.8. The comma of 1,5 could be a decimal point, so it is refused.
func ungrouped(s string) (string, bool) {
	whole, _, _ := strings.Cut(s, ".")
	groups := strings.Split(strings.TrimLeft(whole, "+-"), ",")
	for i, g := range groups {
		if i > 0 && len(g) != 3 || len(g) == 0 || len(g) > 3 {
			return "", false
		}
	}
	return strings.ReplaceAll(whole, ",", "") + s[len(whole):], true
}

// quantity splits "635.91us" into its number and unit.
func quantity(s string) (value float64, unit string, ok bool) {
	end := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != '-' })
	if end < 0 {
		end = len(s)
	}
	value, ok = number(s[:end])
	return value, s[end:], ok
}

// duration parses a time with a unit, such as "635.91us", in seconds.
func duration(s string) (float64, bool) {
	value, unit, ok := quantity(s)
	if unit == "m" { // wrk
		unit = "min"
	}
	by := scales[unit]
	return value * by.factor, ok && by.base == Seconds
}

// size parses wrk's sizes, whose units are powers of 1024 without an "i" (src/units.c).
func size(s string) (float64, bool) {
	value, unit, ok := quantity(s)
	at := slices.Index([]string{"B", "KB", "MB", "GB", "TB", "PB"}, unit)
	return math.Ldexp(value, 10*max(at, 0)), ok && at >= 0
}

// percentile names the latency of a percentile: "latency_p99_9" for "99.90". The 100th is the maximum.
func percentile(share string) (string, bool) {
	p, ok := number(share)
	if !ok || p <= 0 || p > 100 || len(share) > 10 {
		return "", false
	}
	if p == 100 {
		return "latency_max", true
	}
	return "latency_p" + strings.ReplaceAll(strconv.FormatFloat(p, 'f', -1, 64), ".", "_"), true
}
