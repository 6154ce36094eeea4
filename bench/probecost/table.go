// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const head = `<!-- Written by "make generate-probe-cost" and "make probe-cost". -->
# The cost of each eBPF program

**Instructions** are those of the committed object, before the kernel removes dead code. They are the same on every kernel. The
second figure includes the functions that the program calls, which most events do not reach (` + "`heal`" + ` alone has most of
them). CI counts them again and fails if this table differs, so a program that grows is visible in a diff. All variants of a program are
listed, although a kernel loads only one of them (fentry, kprobe).

**ns per event** is the kernel's own run time of the program divided by its runs (eBPF statistics). It includes the time of
two clock reads, so compare it with ` + "`empty`" + `. It was measured once on one machine, and no test compares it. An
empty field was not measured. It does not include the kernel's path to the program:
see [the budget](../decisions/overhead.md), and for functions of runtimes [transitions](../user/transitions.md).

**In the virtual machine** are the same figures in the [virtual SGX machine](../../testbed/README.md). Only there do the programs of the SGX
driver run. QEMU emulates each instruction, so only the ratio of two figures is meaningful.

`

// note is one measured value, as it is printed.
type note string

// notes are the values measured on this machine and in the virtual SGX machine.
type notes struct {
	here, virtual         map[string]note
	whenHere, whenVirtual string
}

func key(object, name string) string { return object + " " + name }

// table writes the document.
func table(programs []program, n notes) string {
	var b strings.Builder
	b.WriteString(head)
	if n.whenHere != "" {
		fmt.Fprintf(&b, "Nanoseconds measured: %s.\n\n", n.whenHere)
	}
	if n.whenVirtual != "" {
		fmt.Fprintf(&b, "In the virtual machine: %s.\n\n", n.whenVirtual)
	}
	object := ""
	for _, p := range programs {
		if p.object != object {
			if object != "" {
				b.WriteString("\n")
			}
			object = p.object
			fmt.Fprintf(&b, "## %s\n\n| program | section | instructions | with calls | ns per event | in the virtual machine |\n|---|---|--:|--:|--:|--:|\n", object)
		}
		of := key(p.object, p.name)
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %s | %s |\n", p.name, p.section, p.own, p.all, n.here[of], n.virtual[of])
	}
	return b.String()
}

// parse reads the notes of an earlier table, and when they were measured.
func parse(text string) notes {
	n := notes{here: map[string]note{}, virtual: map[string]note{}}
	for pattern, into := range map[string]*string{
		`(?m)^Nanoseconds measured: (.*)\.$`: &n.whenHere, `(?m)^In the virtual machine: (.*)\.$`: &n.whenVirtual,
	} {
		if m := regexp.MustCompile(pattern).FindStringSubmatch(text); m != nil {
			*into = m[1]
		}
	}
	object := ""
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			object = strings.TrimSpace(name)
		}
		cells := strings.Split(line, "|")
		if object == "" || len(cells) != 8 {
			continue
		}
		for i, into := range []map[string]note{n.here, n.virtual} {
			ns := strings.TrimSpace(cells[5+i])
			if _, err := strconv.Atoi(ns); err == nil { // not the head of the table
				into[key(object, strings.TrimSpace(cells[1]))] = note(ns)
			}
		}
	}
	return n
}
