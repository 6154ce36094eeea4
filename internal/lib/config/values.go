// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/teescope/teescope/internal/lib/text"
)

// parseDuration parses durations in Prometheus' notation: 100ms, 5s, 15d, 1h30m.
func parseDuration(s string, lo, hi time.Duration) (time.Duration, error) {
	d, err := model.ParseDuration(s)
	if err != nil {
		if _, err := strconv.Atoi(s); err == nil {
			return 0, fmt.Errorf("%q has no unit: use for example %ss", s, s)
		}
		return 0, fmt.Errorf("%q is not a duration: use for example 5s, 90m or 15d", s)
	}
	if v := time.Duration(d); v >= lo && v <= hi {
		return v, nil
	}
	return 0, fmt.Errorf("%s is out of range: use %s to %s", s, formatDuration(lo), formatDuration(hi))
}

func formatDuration(d time.Duration) string { return model.Duration(d).String() }

// sizeUnits lists the units in the order in which a suffix is searched. Decimal and binary units differ: MB is 1000000
// bytes, MiB is 1048576.
func sizeUnits() []struct {
	name string
	size int64
} {
	return []struct {
		name string
		size int64
	}{
		{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
		{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
	}
}

func parseSize(s string, lo int64) (int64, error) {
	if s == "0" {
		return 0, nil
	}
	for _, u := range sizeUnits() {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 {
			break
		}
		if n > math.MaxInt64/u.size {
			return 0, fmt.Errorf("%q is out of range: the maximum is %s", s, formatSize(math.MaxInt64>>40<<40))
		}
		if n *= u.size; n != 0 && n < lo {
			return 0, fmt.Errorf("%s is too small: the minimum is %s, and 0 means no limit", s, formatSize(lo))
		}
		return n, nil
	}
	return 0, fmt.Errorf("%q is not a size: use for example 512MB, 2GiB, or 0 for no limit", s)
}

// formatSize uses the largest unit that divides the size: 512MB stays 512MB and does not become 500000KiB.
func formatSize(n int64) string {
	if n == 0 {
		return "0"
	}
	best := sizeUnits()[len(sizeUnits())-1] // bytes, which divide every size
	for _, u := range sizeUnits() {
		if n%u.size == 0 && u.size > best.size {
			best = u
		}
	}
	return strconv.FormatInt(n/best.size, 10) + best.name
}

func parseInt(s string, lo, hi int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number: use %d to %d", s, lo, hi)
	}
	if n < lo || n > hi {
		return 0, fmt.Errorf("%d is out of range: use %d to %d", n, lo, hi)
	}
	return n, nil
}

// parsePercent parses a percentage and returns a fraction of one. The bounds are percentages.
func parsePercent(s string, lo, hi float64) (float64, error) {
	digits, ok := strings.CutSuffix(s, "%")
	if !ok {
		return 0, fmt.Errorf("%q is not a percentage: use for example 1%% or 0.5%%", s)
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || math.IsNaN(n) {
		return 0, fmt.Errorf("%q is not a percentage: use for example 1%% or 0.5%%", s)
	}
	if n < lo || n > hi {
		return 0, fmt.Errorf("%s is out of range: use %v%% to %v%%", s, lo, hi)
	}
	return n / 100, nil
}

func formatPercent(share float64) string {
	return strconv.FormatFloat(100*share, 'g', 10, 64) + "%"
}

// parseBool accepts only the booleans of YAML 1.2. The meaning of "yes", "on" and "1" differs between versions.
func parseBool(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", s)
}

func checkChoice(s string, choices []string) error {
	for _, c := range choices {
		if s == c {
			return nil
		}
	}
	err := fmt.Errorf("%q is not one of %s", s, strings.Join(choices, ", "))
	if near := text.Nearest(s, choices); near != "" {
		err = fmt.Errorf("%w; did you mean %q?", err, near)
	}
	return err
}

func checkPort(s string, lo uint64) error {
	if n, err := strconv.ParseUint(s, 10, 16); err != nil || n < lo {
		return fmt.Errorf("the port %q is not a number from %d to 65535", s, lo)
	}
	return nil
}

// checkListen accepts an empty host (all addresses) and port 0 (any free port).
func checkListen(s string) error {
	if path, ok := strings.CutPrefix(s, socketPrefix); ok {
		return checkSocket(path)
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("%q is not HOST:PORT: use for example 127.0.0.1:9750", s)
	}
	if strings.ContainsAny(host, "/ @?#") {
		return fmt.Errorf("%q has no valid host: use for example 127.0.0.1:9750", s)
	}
	return checkPort(port, 0)
}

func checkHostPort(s string) error {
	shown := text.WithoutPassword(s)
	if strings.Contains(s, "://") {
		return fmt.Errorf("%q is a URL: use HOST:PORT, for example node1:9750", shown)
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("%q is not HOST:PORT: use for example node1:9750", shown)
	}
	if host == "" || strings.ContainsAny(host, "/ @?#\t\n\"") {
		return fmt.Errorf("%q has no valid host: use for example node1:9750", shown)
	}
	return checkPort(port, 1)
}
