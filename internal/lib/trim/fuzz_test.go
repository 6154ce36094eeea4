// SPDX-License-Identifier: Apache-2.0

package trim

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// FuzzCleanMappings: found mappings are dropped from memory, so each must be a clean one of the program. Each has a
// line of its own that proves this.
func FuzzCleanMappings(f *testing.F) {
	f.Add([]byte("00400000-01000000 r-xp 00000000 08:01 42      /a\nAnonymous:             0 kB\nAnonymous:             0 kB\n"))
	f.Add([]byte("ff-00 r--p 0 08:01 42 /a\nAnonymous: 0 kB\n1-2 rw-p 0 08:01 42 /a\nAnonymous: 0 kB\n"))
	f.Add([]byte("1-2 r--p 0 08:01 42 /a\n3-4 r-xp 0 08:01 42 /b\nAnonymous: 0 kB\n1000-2000 r--p 0 08:01 42 /a\nAnonymous: 4 kB\nAnonymous: 0 kB\n"))
	f.Add([]byte("1000-2000 r--p 0 08:01 42 /a\nAnonymous: 00000000000000000000000000000 kB\n 1000-3000 r--p 0 /a\nAnonymous: 0x1 kB\n"))
	if data, err := os.ReadFile("/proc/self/smaps"); err == nil {
		f.Add(data[:min(len(data), 2000)])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		clean, _ := ownMappings(bytes.NewReader(data), "/a")
		for _, m := range clean {
			if m.from >= m.to || m.from%4096 != 0 || m.to%4096 != 0 {
				t.Errorf("%x is no mapping", m)
			}
			if !hasClean(string(data), m) {
				t.Errorf("%x is not clean in %q", m, data)
			}
		}
	})
}

var (
	heading   = regexp.MustCompile(`^([0-9a-fA-F]+)-([0-9a-fA-F]+) (\S*) `)
	anonymous = regexp.MustCompile(`^Anonymous:`)
)

// hasClean searches for a heading of the mapping after which no memory is anonymous.
func hasClean(smaps string, m mapping) bool {
	inside := false
	for line := range strings.Lines(smaps) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r") // as lines are read
		if h := heading.FindStringSubmatch(line); h != nil {
			inside = (h[3] == "r-xp" || h[3] == "r--p") && strings.HasSuffix(line, " /a") && isNumber(h[1], m.from) && isNumber(h[2], m.to)
		} else if inside && anonymous.MatchString(line) {
			if strings.ReplaceAll(line, " ", "") == "Anonymous:0kB" {
				return true
			}
			inside = false
		}
	}
	return false
}

func isNumber(hex string, want uintptr) bool {
	return strings.EqualFold(strings.TrimLeft(hex, "0"), strings.TrimLeft(fmt.Sprintf("%x", want), "0"))
}
