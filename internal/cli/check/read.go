// SPDX-License-Identifier: Apache-2.0

package check

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const maxFile = 1 << 20

// read reads the beginning of a file; it is empty when it cannot be read.
func read(parts ...string) string {
	f, err := os.Open(filepath.Join(parts...))
	if err != nil {
		return ""
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, maxFile))
	return strings.TrimSpace(string(data))
}

func exists(parts ...string) bool {
	_, err := os.Stat(filepath.Join(parts...))
	return err == nil
}

// isOn reads a boolean module parameter.
func isOn(parts ...string) bool {
	v := read(parts...)
	return v == "Y" || v == "1"
}

// proc reads a file below /proc, sysctl one below /proc/sys.
func (o Options) proc(name string) string   { return read(o.Roots.Proc, name) }
func (o Options) sysctl(name string) string { return read(o.Roots.Proc, "sys", name) }

func (o Options) release() string { return o.sysctl("kernel/osrelease") }

// cpu is what /proc/cpuinfo says of the first CPU.
type cpu struct {
	vendor, model string
	flags         []string
}

func (c cpu) has(flag string) bool { return slices.Contains(c.flags, flag) }

func (o Options) cpu() cpu { return parseCPU(o.proc("cpuinfo")) }

// parseCPU reads lines of "key : value" up to the first empty one, where the next CPU begins.
func parseCPU(text string) cpu {
	var c cpu
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			break
		}
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "vendor_id":
			c.vendor = value
		case "model name":
			c.model = printable(value)
		case "flags":
			c.flags = strings.Fields(value)
		}
	}
	return c
}

// printable keeps what others wrote from steering a terminal.
func printable(s string) string {
	const longest = 200
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest-3], "") + "..."
	}
	return s
}
