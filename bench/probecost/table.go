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
them). CI counts them again and fails when this table differs, so a program that grows shows in a diff. Programs of which one is loaded depending on the kernel (typed, ` + "`_raw`" + `, fentry, kprobe)
are all here.

**ns per event** is the kernel's own run time of the program divided by its runs (eBPF statistics), with the time of
two clock reads in it, so compare with ` + "`empty`" + `. It is a note of one machine at one time and nothing compares it; what is
empty was not measured. It does not hold what it costs the kernel to come to the program:
see [the budget](../decisions/overhead.md).

`

// note is one measured figure, as it is printed.
type note string

func key(object, name string) string { return object + " " + name }

// table writes the document. The notes are of one moment, `when`.
func table(programs []program, notes map[string]note, when string) string {
	var b strings.Builder
	b.WriteString(head)
	if when != "" {
		fmt.Fprintf(&b, "Nanoseconds measured: %s.\n\n", when)
	}
	object := ""
	for _, p := range programs {
		if p.object != object {
			if object != "" {
				b.WriteString("\n")
			}
			object = p.object
			fmt.Fprintf(&b, "## %s\n\n| program | section | instructions | with calls | ns per event |\n|---|---|--:|--:|--:|\n", object)
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %s |\n", p.name, p.section, p.own, p.all, notes[key(p.object, p.name)])
	}
	return b.String()
}

// parse reads the notes of an earlier table and when they were measured.
func parse(text string) (notes map[string]note, when string) {
	notes = map[string]note{}
	if m := regexp.MustCompile(`(?m)^Nanoseconds measured: (.*)\.$`).FindStringSubmatch(text); m != nil {
		when = m[1]
	}
	object := ""
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			object = strings.TrimSpace(name)
		}
		cells := strings.Split(line, "|")
		if object == "" || len(cells) != 7 {
			continue
		}
		ns := strings.TrimSpace(cells[5])
		if _, err := strconv.Atoi(ns); err == nil { // and not the head of the table
			notes[key(object, strings.TrimSpace(cells[1]))] = note(ns)
		}
	}
	return notes, when
}
