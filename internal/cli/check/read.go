// SPDX-License-Identifier: Apache-2.0

package check

import (
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

// sysctl reads a file below /proc/sys.
func (o Options) sysctl(name string) string { return read(o.Roots.Proc, "sys", name) }

func (o Options) release() string { return o.sysctl("kernel/osrelease") }

func (o Options) cpu() hostfs.Processor {
	cpu, _ := hostfs.At(o.Roots.Proc).Processor() // unreadable: it has no flag
	return cpu
}

// printable makes untrusted text fit for the table.
func printable(s string) string {
	const longest = 200
	return text.Short(text.Terminal(s), longest)
}
