// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"path"
	"strings"

	"github.com/teescope/teescope/internal/lib/lazy"
)

// goProcs is the end of a benchmark's name, the number of processors that it may use (GOMAXPROCS).
var goProcs = lazy.Regexp(`-[0-9]+$`)

// goLine is one line of results: a name, the iterations, and pairs of a value and a unit.
type goLine struct {
	pkg, name string
	fields    []string
}

// goSections reads the format of Go benchmarks (https://go.dev/design/14313-benchmark-format). The lines may be anywhere in
// an output. The number of processors is omitted of the names if it is the same in all of them.
func goSections(all []string) []section {
	var found []goLine
	better := map[string]Direction{}
	pkg, failed := "", 0
	packages, procs := map[string]bool{}, map[string]bool{}
	for _, line := range all {
		fields := strings.Fields(line)
		switch {
		case len(fields) >= 4 && strings.HasPrefix(line, "Benchmark") && len(fields)%2 == 0 && isCount(fields[1]):
			if len(found) < maxOutcomes {
				found = append(found, goLine{pkg, strings.TrimPrefix(fields[0], "Benchmark"), fields[1:]})
				packages[pkg], procs[goProcs().FindString(fields[0])] = true, true
			}
		case len(fields) == 2 && fields[0] == "pkg:":
			pkg = fields[1]
		case len(fields) == 3 && fields[0] == "Unit" && strings.HasPrefix(fields[2], "better="):
			if way := Direction(strings.TrimPrefix(fields[2], "better=")); way == Higher || way == Lower {
				better[fields[1]] = way
			}
		case strings.HasPrefix(line, "--- FAIL: Benchmark"):
			failed++
		}
	}
	sections := make([]section, 0, len(found)+1)
	for _, line := range found {
		name := line.name
		if len(procs) == 1 {
			name = goProcs().ReplaceAllString(name, "")
		}
		if len(packages) > 1 {
			name = path.Base(line.pkg) + "." + name
		}
		sections = append(sections, goSection(clean(name), line.fields, better))
	}
	if failed > 0 {
		s := section{tool: goTool}
		s.add("failed_benchmarks", Errors, float64(failed))
		sections = append(sections, s)
	}
	return sections
}

func isCount(s string) bool {
	return len(s) < 19 && s != "" && strings.Trim(s, "0123456789") == ""
}

func goSection(test string, fields []string, better map[string]Direction) section {
	s := section{tool: goTool, test: test}
	for i := 1; i+1 < len(fields); i += 2 {
		if v, ok := number(fields[i]); ok {
			goValue(&s, v, fields[i+1], better)
		}
	}
	if v, ok := number(fields[0]); ok && len(s.outcomes) > 0 {
		s.add("operations", Operations, v)
	}
	return s
}

// goValue adds a value in one of the units of the package testing, or in one that the benchmark defines: "p99-ns" is a time,
// and "req/s" a rate. A line "Unit NAME better=higher" says which values are better.
func goValue(s *section, v float64, unit string, better map[string]Direction) {
	switch unit {
	case "ns/op":
		s.time("time_per_operation", v*1e-9)
		return
	case "B/op":
		s.add("bytes_allocated_per_operation", bytesPerOperation, v)
		return
	case "allocs/op":
		s.add("allocations_per_operation", allocationsPerOperation, v)
		return
	case "MB/s":
		s.add("bytes_throughput", BytesPerSecond, v*1e6)
		return
	}
	name, base, factor := goUnit(unit)
	way, said := better[unit]
	if !said {
		way = direction(name, base)
	}
	if way == Neither && strings.HasSuffix(unit, "/s") {
		way = Higher
	}
	s.custom(name, base, v*factor, way)
}

// goUnit returns the name and the base unit of a metric that a benchmark defines.
func goUnit(unit string) (name, base string, factor float64) {
	if rest, found := strings.CutSuffix(unit, "-ns"); found {
		if share, found := strings.CutPrefix(rest, "p"); found {
			if name, ok := percentile(share); ok {
				return name, Seconds, 1e-9
			}
		}
		return clean(rest), Seconds, 1e-9
	}
	if rest, found := strings.CutPrefix(unit, "ns/"); found {
		return clean("time_per_" + rest), Seconds, 1e-9
	}
	if rest, found := strings.CutSuffix(unit, "/s"); found {
		base = clean(rest + "_per_second")
		name = base
		if by, known := scales[unit]; known {
			return name, by.base, by.factor
		}
		return name, base, 1
	}
	return clean(unit), clean(unit), 1
}
