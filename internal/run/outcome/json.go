// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// maxBroken bounds how many lines of an output may look like the beginning of a document and be none. Each may be read to
// the end of the output.
const maxBroken = 10

// readJSON reads the documents in an output of the benchmarks that write JSON. A document begins with a line "{". Google
// benchmark writes warnings before it.
func readJSON(output []byte) []section {
	var all []section
	for broken := 0; broken < maxBroken; {
		begin := document(output)
		if begin < 0 {
			break
		}
		var data json.RawMessage
		in := json.NewDecoder(bytes.NewReader(output[begin:]))
		if in.Decode(&data) != nil {
			output = output[begin+1:]
			broken++
			continue
		}
		for _, read := range []func([]byte) []section{hyperfineJSON, googleJSON, memtierJSON} {
			if sections := read(data); len(sections) > 0 {
				all = append(all, sections...)
				break
			}
		}
		output = output[begin+int(in.InputOffset()):]
	}
	return all
}

// document returns where the first line that begins with "{" begins, or -1.
func document(output []byte) int {
	if bytes.HasPrefix(output, []byte("{")) {
		return 0
	}
	if at := bytes.Index(output, []byte("\n{")); at >= 0 {
		return at + 1
	}
	return -1
}

// numbers returns the fields of an object that are numbers.
func numbers(data json.RawMessage) map[string]float64 {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return nil
	}
	all := map[string]float64{}
	for name, field := range fields {
		var v *float64
		if json.Unmarshal(field, &v) == nil && v != nil {
			all[name] = *v
		}
	}
	return all
}

// hyperfineJSON reads the file of hyperfine --export-json. A run that was measured by itself has no deviation.
func hyperfineJSON(data []byte) []section {
	var file struct {
		Results []struct {
			Command                            string
			Mean, Stddev, Median, User, System *float64
			Min, Max                           *float64
			Times                              []float64
			ExitCodes                          []*int `json:"exit_codes"`
		}
	}
	if json.Unmarshal(data, &file) != nil {
		return nil
	}
	var all []section
	for _, r := range file.Results {
		s := section{tool: hyperfineTool, test: clean(r.Command)}
		for _, part := range []struct {
			name  string
			value *float64
		}{
			{"time_mean", r.Mean}, {"time_median", r.Median}, {"time_stdev", r.Stddev}, {"time_min", r.Min}, {"time_max", r.Max},
			{"user_time", r.User}, {"system_time", r.System},
		} {
			if part.value != nil {
				s.time(part.name, *part.value)
			}
		}
		if s.find("time_mean") == nil {
			continue
		}
		if len(r.Times) > 0 {
			s.add("operations", Operations, float64(len(r.Times)))
		}
		if failed := slices.DeleteFunc(r.ExitCodes, func(c *int) bool { return c != nil && *c == 0 }); len(r.ExitCodes) > 0 {
			s.add("failed_runs", Errors, float64(len(failed)))
		}
		all = append(all, s)
	}
	return all
}

// googleRun is one entry of the list "benchmarks" that Google benchmark writes (src/json_reporter.cc).
type googleRun struct {
	Name          string
	RunName       string `json:"run_name"`
	RunType       string `json:"run_type"` // iteration or aggregate
	AggregateName string `json:"aggregate_name"`
	TimeUnit      string `json:"time_unit"`
	Failed        bool   `json:"error_occurred"`
	Message       string `json:"error_message"`
}

// googleOwn are the numbers of a run that are not counters of its author.
var googleOwn = []string{
	"family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads", "iterations", "real_time", "cpu_time",
	"items_per_second", "bytes_per_second", "cv", "rms",
}

// googleJSON reads the output of Google benchmark with --benchmark_format=json. Repetitions become one section each. If
// the file has aggregates only, the median of a test counts.
func googleJSON(data []byte) []section {
	var file struct {
		Context    json.RawMessage
		Benchmarks []json.RawMessage
	}
	if json.Unmarshal(data, &file) != nil || len(file.Context) == 0 {
		return nil
	}
	var runs, aggregates []section
	for _, data := range file.Benchmarks[:min(len(file.Benchmarks), maxOutcomes)] {
		var run googleRun
		if json.Unmarshal(data, &run) != nil || run.Name == "" {
			continue
		}
		switch {
		case run.RunType != "aggregate":
			runs = append(runs, googleSection(run, run.Name, data))
		case run.AggregateName == "median":
			s := googleSection(run, run.RunName, data)
			// Its iterations are repetitions, so they are omitted.
			s.outcomes = slices.DeleteFunc(s.outcomes, func(o Outcome) bool { return o.Unit == Operations })
			for i := range s.outcomes {
				s.outcomes[i].note(fmt.Sprintf("median of %d", int64(numbers(data)["repetitions"])))
			}
			aggregates = append(aggregates, s)
		}
	}
	if len(runs) > 0 {
		return runs
	}
	return aggregates
}

func googleSection(run googleRun, name string, data json.RawMessage) section {
	s := section{tool: googleTool, test: clean(name)}
	if run.Failed {
		s.add("failed_runs", Errors, 1).Note = run.Message
		return s
	}
	if run.TimeUnit == "" {
		run.TimeUnit = "ns"
	}
	by := scales[run.TimeUnit]
	values := numbers(data)
	if by.base == Seconds {
		s.time("time_per_operation", values["real_time"]*by.factor)
		s.time("cpu_time_per_operation", values["cpu_time"]*by.factor)
	}
	if v, ok := values["items_per_second"]; ok {
		s.add("throughput", OperationsPerSecond, v)
	}
	if v, ok := values["bytes_per_second"]; ok {
		s.add("bytes_throughput", BytesPerSecond, v)
	}
	for _, counter := range sorted(values) {
		if !slices.Contains(googleOwn, counter) {
			s.custom(clean(counter), "", values[counter], direction(counter, ""))
		}
	}
	if v, ok := values["iterations"]; ok {
		s.add("operations", Operations, v)
	}
	return s
}

// hyperfine reads what hyperfine prints of one command. The printed values are rounded to a tenth; those in its JSON
// file are not.
func hyperfine(lines []string) section {
	s := section{tool: hyperfineTool, test: clean(hyperfineTitle().FindStringSubmatch(lines[0])[1])}
	for _, line := range lines[1:] {
		name, rest, _ := strings.Cut(line, "):")
		fields := strings.Fields(strings.NewReplacer("±", " ", "…", " ", "[User:", " ", "System:", " ", "]", " ", ",", " ").Replace(rest))
		switch {
		case strings.HasPrefix(name, "Time (mean"):
			hyperfineTimes(&s, fields, "time_mean", "time_stdev", "user_time", "system_time")
		case strings.HasPrefix(name, "Time (abs"):
			hyperfineTimes(&s, fields, "time_mean", "user_time", "system_time")
		case strings.HasPrefix(name, "Range (min"):
			hyperfineTimes(&s, fields, "time_min", "time_max")
			if n := len(fields); n == 6 && fields[n-1] == "runs" {
				if v, err := strconv.ParseUint(fields[n-2], 10, 32); err == nil {
					s.add("operations", Operations, float64(v))
				}
			}
		case line == "Warning: Ignoring non-zero exit code.":
			s.add("failed_runs", Errors, 1).Note = "at least one"
		}
	}
	return s
}

// hyperfineTimes reads times that are two fields each, a number and its unit.
func hyperfineTimes(s *section, fields []string, names ...string) {
	for i, name := range names {
		if 2*i+1 >= len(fields) {
			return
		}
		if v, ok := duration(fields[2*i] + fields[2*i+1]); ok {
			s.time(name, v)
		}
	}
}
