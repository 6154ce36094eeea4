// SPDX-License-Identifier: Apache-2.0

// Package outcome reads the figures that a benchmark prints: throughput, latency and errors. It recognises the output of
// common benchmarks, and finds other figures with regular expressions.
//
// Every figure is in a base unit (seconds, operations per second), so that figures of different programs compare. A figure
// that a program did not print is absent. A latency printed as zero is below the resolution of the program, so it is
// absent too.
//
// The package does not start benchmarks, evaluate figures, or depend on run files.
package outcome

import (
	"errors"
	"fmt"

	"github.com/teescope/teescope/internal/lib/inputfile"
)

// Direction says which values of an outcome are better.
type Direction string

// The directions. An outcome with neither describes the run, and is not judged.
const (
	Higher  Direction = "higher"
	Lower   Direction = "lower"
	Neither Direction = ""
)

// The base units of outcomes. A benchmark may have others, for metrics that it defines itself.
const (
	Seconds             = "seconds"
	OperationsPerSecond = "operations_per_second"
	BytesPerSecond      = "bytes_per_second"
	Bytes               = "bytes"
	Ratio               = "ratio"
	// Operations is the unit of a number of operations, which says over how many the other figures are.
	Operations = "operations"
	// Errors is the unit of a number of failures. A throughput next to failures does not compare with one without.
	Errors = "errors"

	bytesPerOperation       = "bytes_per_operation"
	allocationsPerOperation = "allocations_per_operation"
)

// Outcome is one figure of a benchmark.
type Outcome struct {
	// Name is unique within the result of one read: "throughput", or "SET.throughput" if the output has several tests.
	Name string `json:"name"`
	// Test is the name that the benchmark gives the test, with blanks and control characters replaced. It is empty if the
	// benchmark names none, or if the figure is of all tests together.
	Test   string    `json:"test,omitempty"`
	Unit   string    `json:"unit,omitempty"`
	Value  float64   `json:"value"` // finite and not negative, except for custom metrics and regular expressions
	Better Direction `json:"better,omitempty"`
	From   string    `json:"from"`           // the benchmark's name, or "regex"
	Note   string    `json:"note,omitempty"` // what limits the figure; empty for most
}

const (
	// maxOutput is the number of bytes that Read looks at, and the size of a file that ReadFile accepts. Read ignores
	// later bytes.
	maxOutput = 16 << 20
	// maxOutcomes is the number of outcomes of one output. Later ones are ignored.
	maxOutcomes = 2000
)

// errUnknown is the error of a file with no outcomes.
var errUnknown = errors.New("no known benchmark wrote it")

// Read returns the outcomes in an output, in the order of the output. It recognises each benchmark by its text, so that the
// output of a script may have several. If the output has the same test several times, the last one counts, except
// that Go and Google benchmarks are repeated for the median of their values. An unknown output has no outcomes.
func Read(output []byte) []Outcome {
	output = output[:min(len(output), maxOutput)]
	return named(append(readText(output), readJSON(output)...))
}

// Repetitions returns the outcomes in an output as Read does, but the repetitions of Go and Google benchmarks one by one:
// the first of each test, then the second, and so on. Other outcomes are in the first one. The error says that there are
// none, or that the output is larger than 16 MiB.
func Repetitions(output []byte) ([][]Outcome, error) {
	if len(output) > maxOutput {
		return nil, fmt.Errorf("more than %d MiB of a benchmark's output", maxOutput>>20)
	}
	sections := append(readText(output), readJSON(output)...)
	n, seen, split := newNames(merged(sections)), map[[2]string]int{}, [][]section{nil}
	var once []section
	for _, s := range sections {
		if !repeats(s.tool) {
			once = append(once, s)
			continue
		}
		key := [2]string{s.tool, s.test}
		if len(s.outcomes) == 0 || len(s.outcomes) == 1 && s.test == "" && s.outcomes[0].Unit == Errors {
			once = append(once, s)
			continue
		}
		if seen[key] == len(split) {
			split = append(split, nil)
		}
		split[seen[key]] = append(split[seen[key]], s)
		seen[key]++
	}
	split[0] = append(merged(once), split[0]...)
	var all [][]Outcome
	for _, some := range split {
		if found := n.list(some); len(found) > 0 {
			all = append(all, found)
		}
	}
	if len(all) == 0 {
		return nil, errUnknown
	}
	return all, nil
}

// ReadFile returns the outcomes of a file that a benchmark wrote, usually JSON. The error says that the file cannot be
// read, is larger than 16 MiB, or has no outcomes.
func ReadFile(path string) ([]Outcome, error) {
	data, err := inputfile.Read(path, maxOutput)
	if err != nil {
		return nil, fmt.Errorf("reading the outcomes of a benchmark: %w", err)
	}
	outcomes := Read(data)
	if len(outcomes) == 0 {
		return nil, fmt.Errorf("reading the outcomes of %s: %w; give a regular expression for each outcome instead", path, errUnknown)
	}
	return outcomes, nil
}
