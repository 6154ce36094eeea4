// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"slices"
	"strconv"
	"strings"
)

// Processor is what /proc/cpuinfo of x86 says of the first processor (arch/x86/kernel/cpu/proc.c). The others are usually alike.
type Processor struct {
	Vendor, Name, Microcode string   // "" if unknown
	Family, Model           int      // -1 if unknown
	Flags                   []string // nil if unknown
}

// Has reports whether the processor has a flag.
func (p Processor) Has(flag string) bool { return slices.Contains(p.Flags, flag) }

// Processor reads the first processor. Its Name may contain any bytes in a virtual machine. The root must be /proc.
func (r Root) Processor() (Processor, error) {
	const most = 16 << 10 // enough for the first processor
	data, err := r.Read(most, "cpuinfo")
	return parseProcessor(data), err
}

// parseProcessor parses the lines up to the first empty one. A line without an end was cut, and is left out.
func parseProcessor(data []byte) Processor {
	p := Processor{Family: -1, Model: -1}
	for line := range strings.Lines(string(data)) {
		name, value, found := strings.Cut(line, ":")
		if !found && strings.TrimSpace(line) == "" {
			break
		}
		if !strings.HasSuffix(line, "\n") {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "vendor_id":
			p.Vendor = value
		case "model name":
			p.Name = value
		case "microcode":
			p.Microcode = value
		case "cpu family":
			p.Family = smallNumber(value)
		case "model":
			p.Model = smallNumber(value)
		case "flags":
			p.Flags = strings.Fields(value)
		}
	}
	return p
}

// smallNumber returns -1 for text that is not a number below 65536.
func smallNumber(text string) int {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return -1
	}
	return int(n)
}
