// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const head = `<!-- Written by "make generate-probe-cost" and "make probe-cost". -->
# What each eBPF program costs

**Instructions** are those of the committed object, before the kernel removes dead code: the same on every kernel. The
second figure is with the functions that the program calls, which most events do not reach (` + "`heal`" + ` alone has most of
them). CI counts them again and fails when this table differs, so a program that grows shows in a diff. Programs of which one is loaded depending on the kernel (fentry, kprobe)
are all here.

**ns per event** is the kernel's own run time of the program divided by its runs (eBPF statistics), with the time of
two clock reads in it, so compare with ` + "`empty`" + `. It is a note of one machine at one time and nothing compares it; what is
empty was not measured. It does not hold what it costs the kernel to come to the program:
see [the budget](../decisions/overhead.md), and for functions of runtimes [transitions](../user/transitions.md).

**In the virtual machine** are the same in the [virtual SGX machine](../../testbed/README.md), where alone the SGX
driver's programs run. QEMU emulates each instruction there: what means something is the proportion of two of them.

`

// note is one measured figure, as it is printed.
type note string

// notes are what was measured where: here, and in the virtual SGX machine.
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

// parse reads the notes of an earlier table and when they were measured.
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
			if _, err := strconv.Atoi(ns); err == nil { // and not the head of the table
				into[key(object, strings.TrimSpace(cells[1]))] = note(ns)
			}
		}
	}
	return n
}
