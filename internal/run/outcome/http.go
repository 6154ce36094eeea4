// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/lazy"
)

var wrkSocket = lazy.Regexp(`^Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$`)

// wrk reads the output of wrk 4 (src/wrk.c, main and print_stats), and the percentiles of wrk2. wrk prints errors only if
// there were any, before its last two lines.
func wrk(lines []string) section {
	s := section{tool: wrkTool}
	complete, socket, status := false, 0.0, 0.0
	note := ""
	for _, line := range lines {
		fields := strings.Fields(line)
		if rest, ok := after(line, "Requests/sec:"); ok {
			if v, ok := number(rest); ok {
				s.add("throughput", OperationsPerSecond, v)
				complete = true
			}
		} else if rest, ok := after(line, "Transfer/sec:"); ok {
			if v, ok := size(rest); ok {
				s.add("bytes_throughput", BytesPerSecond, v)
			}
		} else if rest, ok := after(line, "Non-2xx or 3xx responses:"); ok {
			status, _ = number(rest)
		} else if m := wrkSocket().FindStringSubmatch(line); m != nil {
			note = strings.TrimPrefix(line, "Socket errors: ")
			for _, n := range m[1:] {
				v, _ := number(n)
				socket += v
			}
		} else if len(fields) > 3 && fields[1] == "requests" && fields[2] == "in" {
			if v, ok := number(fields[0]); ok {
				s.add("operations", Operations, v)
			}
		} else {
			wrkLatency(&s, fields)
		}
	}
	if complete {
		s.add("socket_errors", Errors, socket).Note = note
		s.add("non_2xx", Errors, status).Note = "wrk counts responses outside 200 to 399"
	}
	return s
}

// wrkLatency reads "Latency MEAN STDEV MAX SHARE%" and "99% 2.83ms".
func wrkLatency(s *section, fields []string) {
	if len(fields) == 5 && fields[0] == "Latency" {
		for i, name := range []string{"latency_mean", "latency_stdev", "latency_max"} {
			if v, ok := duration(fields[1+i]); ok {
				s.time(name, v)
			}
		}
	}
	if len(fields) == 2 && strings.HasSuffix(fields[0], "%") {
		name, ok := percentile(strings.TrimSuffix(fields[0], "%"))
		if v, known := duration(fields[1]); ok && known {
			s.time(name, v)
		}
	}
}

// resolution is the note of the latencies that ab prints as whole milliseconds.
const resolution = "ab prints whole milliseconds"

// ab reads the output of ApacheBench 2.3 (support/ab.c, output_results). Its rates are per 1024 bytes.
func ab(lines []string) section {
	s := section{tool: abTool}
	for i, line := range lines {
		name, rest, _ := strings.Cut(line, ":")
		v, ok := first(rest)
		switch {
		case !ok:
			abPercentile(&s, strings.Fields(line))
		case name == "Complete requests":
			s.add("operations", Operations, v)
		case name == "Failed requests":
			failed := s.add("failed_requests", Errors, v)
			if i+1 < len(lines) && strings.HasPrefix(lines[i+1], "(Connect:") {
				failed.Note = strings.Trim(lines[i+1], "()") + "; Length counts answers of another length than the first"
			}
		case name == "Write errors":
			s.add("write_errors", Errors, v)
		case name == "Non-2xx responses":
			s.add("non_2xx", Errors, v)
		case name == "Requests per second":
			s.add("throughput", OperationsPerSecond, v)
		case name == "Time per request" && strings.HasSuffix(line, "[ms] (mean)"):
			s.time("latency_mean", v/1e3)
		case name == "Transfer rate" && strings.Contains(line, "[Kbytes/sec] received"):
			s.add("bytes_throughput", BytesPerSecond, v*1024)
		case name == "Total" && len(strings.Fields(rest)) == 5: // of Connection Times: min mean stdev median max
			s.time("latency_min", v/1e3).Note = resolution
		}
	}
	if s.find("throughput") != nil && s.find("non_2xx") == nil { // ab prints it only if there were any
		s.add("non_2xx", Errors, 0)
	}
	return s
}

// abPercentile reads "99% 3" and "100% 9 (longest request)".
func abPercentile(s *section, fields []string) {
	if len(fields) < 2 || !strings.HasSuffix(fields[0], "%") || len(fields) > 2 && fields[2] != "(longest" {
		return
	}
	name, ok := percentile(strings.TrimSuffix(fields[0], "%"))
	if v, known := number(fields[1]); ok && known {
		s.time(name, v/1e3).Note = resolution
	}
}

var (
	heyShare = lazy.Regexp(`^([0-9.]+)%+ in ([0-9.]+) secs`)
	heyCount = lazy.Regexp(`^\[(\d+)\]\s+(.*)$`)
)

// hey reads the default output of hey (requester/print.go). Its throughput includes requests that failed.
func hey(lines []string) section {
	s := section{tool: heyTool}
	var answers, others, failed float64
	part := ""
	for _, line := range lines {
		name, rest, _ := strings.Cut(line, ":")
		v, ok := first(rest)
		if m := heyCount().FindStringSubmatch(line); m != nil {
			switch part {
			case "Status code distribution":
				n, _ := first(m[2])
				answers += n
				if code, _ := strconv.Atoi(m[1]); code < 200 || code > 299 {
					others += n
				}
			case "Error distribution":
				n, _ := number(m[1])
				failed += n
			}
		} else if m := heyShare().FindStringSubmatch(line); m != nil {
			name, ok := percentile(m[1])
			if v, known := number(m[2]); ok && known {
				s.time(name, v)
			}
		} else if ok {
			heySummary(&s, name, v)
		} else if rest == "" {
			part = name
		}
	}
	if part == "" || s.find("throughput") == nil {
		return section{}
	}
	s.add("operations", Operations, answers)
	s.add("non_2xx", Errors, others)
	s.add("failed_requests", Errors, failed)
	if failed > 0 {
		s.find("throughput").note("includes the failed requests")
	}
	return s
}

func heySummary(s *section, name string, v float64) {
	switch name {
	case "Requests/sec":
		s.add("throughput", OperationsPerSecond, v)
	case "Average":
		s.time("latency_mean", v)
	case "Slowest":
		s.time("latency_max", v)
	case "Fastest":
		s.time("latency_min", v)
	}
}
