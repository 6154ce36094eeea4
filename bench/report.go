// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Report is the result of one run.
type Report struct {
	Machine  Machine    `json:"machine"`
	Rounds   int        `json:"rounds"`
	Window   float64    `json:"window_seconds"`
	Idle     float64    `json:"at_rest_seconds"`
	Base     string     `json:"base"`
	Rows     []Row      `json:"rows"`
	Watching []Watching `json:"watching"`
	Truths   []Truth    `json:"truths"`
	Own      Own        `json:"teescope"`
}

// Row compares one mode of one load with the base.
type Row struct {
	Load       string    `json:"load"`
	Mode       string    `json:"mode"`
	Rate       Estimate  `json:"operations_per_second"`
	CPUPerOp   Estimate  `json:"server_cpu_seconds_per_operation"`
	RateRatio  Estimate  `json:"rate_ratio_to_base"`
	CPURatio   Estimate  `json:"cpu_ratio_to_base"`
	RateValues []float64 `json:"operations_per_second_by_round"`
}

// Watching is what one mode itself uses under one load: user space and eBPF maps. The cost of its BPF programs is in
// the rows. Values that it does not have are absent.
type Watching struct {
	Load       string    `json:"load"`
	Mode       string    `json:"mode"`
	Processes  []Process `json:"processes"`
	MapBytes   *Estimate `json:"bpf_map_bytes,omitempty"`
	Series     *Estimate `json:"series,omitempty"`
	ScrapeTime *Estimate `json:"scrape_seconds,omitempty"`
}

// Process is one process of a mode, with its children.
type Process struct {
	Name     string   `json:"name"`
	CPU      Estimate `json:"cpu_of_one_core"` // 1 is a whole core
	Resident Estimate `json:"resident_bytes"`
}

// idleMode is the name of the run without a load.
const idleMode = "at rest"

// Machine describes the machine and the time. Results have no meaning without them.
type Machine struct {
	Date   string `json:"date"`
	Kernel string `json:"kernel"`
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Load   string `json:"load_average_at_start"`
}

func machine() Machine {
	m := Machine{Date: time.Now().UTC().Format("2006-01-02"), Cores: runtime.NumCPU(), Kernel: "unknown", CPU: "unknown"}
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		m.Kernel = unix.ByteSliceToString(uts.Release[:])
	}
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load = strings.Join(strings.Fields(string(data))[:3], " ")
	}
	return m
}

// rowsOf compares every mode with the first, round by round.
func rowsOf(load string, modes []string, samples map[string][]sample) []Row {
	column := func(mode string, of func(sample) float64) []float64 {
		var values []float64
		for _, s := range samples[mode] {
			values = append(values, of(s))
		}
		return values
	}
	rate := func(s sample) float64 { return s.rate }
	cpu := func(s sample) float64 { return s.cpuPerOp }
	var rows []Row
	for _, mode := range modes {
		rows = append(rows, Row{
			Load: load, Mode: mode,
			Rate:       estimate(column(mode, rate)),
			CPUPerOp:   estimate(column(mode, cpu)),
			RateRatio:  estimate(ratios(column(mode, rate), column(modes[0], rate))),
			CPURatio:   estimate(ratios(column(mode, cpu), column(modes[0], cpu))),
			RateValues: column(mode, rate),
		})
	}
	return rows
}

func watchingOf(load string, modes []string, samples map[string][]sample) []Watching {
	var all []Watching
	for _, mode := range modes {
		w := Watching{Load: load, Mode: mode}
		cpu, resident := map[string][]float64{}, map[string][]float64{}
		var bytes, series, scrape []float64
		for _, s := range samples[mode] {
			for name := range s.use.cpu {
				cpu[name] = append(cpu[name], s.use.cpu[name])
				resident[name] = append(resident[name], s.use.resident[name])
			}
			bytes, series, scrape = append(bytes, s.use.maps...), append(series, s.use.series...), append(scrape, s.use.scrape...)
		}
		for _, name := range slices.Sorted(maps.Keys(cpu)) {
			w.Processes = append(w.Processes, Process{name, estimate(cpu[name]), estimate(resident[name])})
		}
		w.MapBytes, w.Series, w.ScrapeTime = estimated(bytes), estimated(series), estimated(scrape)
		if len(w.Processes) > 0 {
			all = append(all, w)
		}
	}
	return all
}

// estimated returns nil when nothing was measured.
func estimated(values []float64) *Estimate {
	if len(values) == 0 {
		return nil
	}
	e := estimate(values)
	return &e
}

func readReport(file string) (Report, error) {
	var r Report
	data, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("reading the report %s: %w", file, err)
	}
	return r, nil
}

func (r Report) write(stdout io.Writer, o options) error {
	text := r.markdown()
	if _, err := io.WriteString(stdout, text); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	for file, content := range map[string][]byte{o.markdown: []byte(text), o.json: append(data, '\n'), o.picture: []byte(r.picture())} {
		if file == "" {
			continue
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
