// SPDX-License-Identifier: Apache-2.0

// Package read reads what Gramine and the tools around it print: SGX stats, log lines that name a cause, is-sgx-available,
// strace -c, perf stat, and the hotspots of VTune. It also reads tables of throughput, and the configuration of other runtimes.
//
// It reads bytes that the caller has bounded. It does not open files, and it does not judge what it reads.
package read

import (
	"errors"
	"iter"
	"strings"
)

// MaxBytes bounds a file of any reader. A trace log of Gramine has about 100 bytes for each system call.
const MaxBytes = 256 << 20

const (
	// maxLine bounds how much of a line is inspected, in bytes. No line that a reader knows is that long, except those of
	// hotspots.
	maxLine = 1 << 10
	// maxRow bounds a line of hotspots, in bytes: names of C++ have thousands of characters.
	maxRow = 1 << 20
)

// errNothing is the error of a file in which a reader recognises no line.
var errNothing = errors.New("the content is not recognized")

// lines returns the lines with their numbers, from 1 on. Long lines are cut.
func lines(data string) iter.Seq2[int, string] { return linesOf(data, maxLine) }

// linesOf returns the lines, and of each the first bytes up to a number.
func linesOf(data string, most int) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		n := 0
		for line := range strings.Lines(data) {
			n++
			if !yield(n, strings.TrimRight(line[:min(len(line), most)], "\r\n")) {
				return
			}
		}
	}
}
