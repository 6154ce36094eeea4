// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"
	"time"
)

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "2GiB": 2 << 30, "512MB": 512e6, "20000kB": 20e6, "16777216B": 16 << 20, "1TiB": 1 << 40, "3 GB": 3e9,
	} {
		n, err := parseSize(s, 16<<20)
		if err != nil || n != want {
			t.Errorf("parseSize(%q) = %d, %v; want %d", s, n, err, want)
		}
		if back, err := parseSize(formatSize(n), 0); err != nil || back != n {
			t.Errorf("formatSize(%d) = %q, which reads back as %d, %v", n, formatSize(n), back, err)
		}
	}
	for _, s := range []string{"", "2", "-1GB", "1.5GB", "GiB", "9999999999GiB", "1KiB", "2gib"} {
		if n, err := parseSize(s, 16<<20); err == nil {
			t.Errorf("parseSize(%q) = %d, want an error", s, n)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for s, want := range map[string]time.Duration{"15d": 360 * time.Hour, "1h30m": 90 * time.Minute, "100ms": 100 * time.Millisecond} {
		if d, err := parseDuration(s, 0, 1000*time.Hour); err != nil || d != want {
			t.Errorf("parseDuration(%q) = %v, %v; want %v", s, d, err, want)
		}
	}
	for _, s := range []string{"", "5", "1.5s", "-1s", "2000h"} {
		if d, err := parseDuration(s, 0, 1000*time.Hour); err == nil {
			t.Errorf("parseDuration(%q) = %v, want an error", s, d)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, s := range []string{"127.0.0.1:0", ":9750", "[::1]:9750", "host:1"} {
		if err := checkListen(s); err != nil {
			t.Errorf("checkListen(%q) = %v", s, err)
		}
	}
	for _, s := range []string{"", "host", "host:", "host:http", "host:65536", "a/b:1", "::1:80"} {
		if err := checkListen(s); err == nil {
			t.Errorf("checkListen(%q) = nil", s)
		}
		if err := checkHostPort(s); err == nil {
			t.Errorf("checkHostPort(%q) = nil", s)
		}
	}
	for _, s := range []string{":1", "h:0"} {
		if err := checkHostPort(s); err == nil {
			t.Errorf("checkHostPort(%q) = nil", s)
		}
	}
}
