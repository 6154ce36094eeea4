// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/text"
)

const maxFile = 1 << 20

// read returns the beginning of a file. It is empty when the file cannot be read.
func read(root string, name ...string) string {
	data, _ := hostfs.At(root).Read(maxFile, name...)
	return strings.TrimSpace(string(data))
}

func exists(root string, name ...string) bool { return hostfs.At(root).Exists(name...) }

// proc reads a file below /proc, sysctl one below /proc/sys.
func (o Options) proc(name string) string   { return read(o.Roots.Proc, name) }
func (o Options) sysctl(name string) string { return read(o.Roots.Proc, "sys", name) }

func (o Options) release() string { return o.sysctl("kernel/osrelease") }

// cpu is the content of /proc/cpuinfo about the first CPU.
type cpu struct {
	vendor, model string
	flags         []string
}

func (c cpu) has(flag string) bool { return slices.Contains(c.flags, flag) }

func (o Options) cpu() cpu { return parseCPU(o.proc("cpuinfo")) }

// parseCPU parses lines of "key : value" up to the first empty line, which ends the first CPU.
func parseCPU(info string) cpu {
	var c cpu
	for line := range strings.Lines(info) {
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

// printable makes untrusted text fit for the table.
func printable(s string) string {
	const longest = 200
	return text.Short(text.Terminal(s), longest)
}
