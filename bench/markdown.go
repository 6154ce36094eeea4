// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
)

func (e Estimate) ratio() string {
	return fmt.Sprintf("%.3f (%.3f-%.3f)", e.Median, e.Low, e.High)
}

func (r Report) markdown() string {
	var b strings.Builder
	m := r.Machine
	fmt.Fprintf(&b, "Measured %s on Linux %s, %s, %d cores (load average before: %s). Server on core %d, client on core %d.\n",
		m.Date, m.Kernel, m.CPU, m.Cores, m.Load, serverCore, clientCore)
	fmt.Fprintf(&b, "Windows of %g s, modes in random order in each of %d rounds. The ratios are medians of the ratios to %q of the same round, with 95 %% bootstrap intervals.\n\n",
		r.Window, r.Rounds, r.Base)
	if r.Rounds < 5 {
		fmt.Fprintf(&b, "n = %d: too few rounds to say anything about cost.\n\n", r.Rounds)
	}
	r.writeModes(&b)
	r.writeRows(&b)
	r.writeWatching(&b)
	r.writeTruths(&b)
	r.writeOwn(&b)
	return b.String()
}

// writeModes describes the measured modes.
func (r Report) writeModes(b io.Writer) {
	fmt.Fprintln(b, "| mode | what it is |\n|---|---|")
	seen := map[string]bool{}
	for _, row := range r.Rows {
		if !seen[row.Mode] {
			fmt.Fprintf(b, "| %s | %s |\n", row.Mode, modeNamed(row.Mode).is)
		}
		seen[row.Mode] = true
	}
}

func (r Report) writeRows(b io.Writer) {
	fmt.Fprintln(b, "\n| load | mode | operations/s | throughput ratio | server CPU/operation | CPU ratio | n |")
	fmt.Fprintln(b, "|---|---|--:|--:|--:|--:|--:|")
	for _, row := range r.Rows {
		rate, cpu := row.RateRatio.ratio(), row.CPURatio.ratio()
		if row.Mode == r.Base {
			rate, cpu = "1", "1"
		}
		fmt.Fprintf(b, "| %s | %s | %.0f | %s | %.3f us | %s | %d |\n",
			row.Load, row.Mode, row.Rate.Median, rate, row.CPUPerOp.Median*1e6, cpu, row.Rate.N)
	}
}

func (r Report) writeWatching(b io.Writer) {
	fmt.Fprintf(b, "\nCost of the watching processes, scraped at the interval of a Prometheus. At rest for %g s (n=1), else medians of the windows above.\n\n", r.Idle)
	fmt.Fprintln(b, "| load | mode | CPU of one core | RSS | BPF maps | series | scrape | processes |")
	fmt.Fprintln(b, "|---|---|--:|--:|--:|--:|--:|---|")
	for _, w := range r.Watching {
		var cpu, resident float64
		var names []string
		for _, p := range w.Processes {
			cpu, resident = cpu+p.CPU.Median, resident+p.Resident.Median
			names = append(names, fmt.Sprintf("%s %.2f %% %.0f MB", p.Name, p.CPU.Median*100, p.Resident.Median/mega))
		}
		fmt.Fprintf(b, "| %s | %s | %.2f %% | %.0f MB | %s | %s | %s | %s |\n", w.Load, w.Mode, cpu*100, resident/mega,
			w.MapBytes.in(mega, "%.1f MB"), w.Series.in(1, "%.0f"), w.ScrapeTime.in(1e-3, "%.1f ms"), strings.Join(names, ", "))
	}
}

// in returns the median in another unit. It returns nothing when the estimate is nil.
func (e *Estimate) in(unit float64, format string) string {
	if e == nil {
		return ""
	}
	return fmt.Sprintf(format, e.Median/unit)
}

func (r Report) writeTruths(b io.Writer) {
	if len(r.Truths) == 0 {
		return
	}
	fmt.Fprintln(b, "\nCounted of a known number of calls (getppid, of one process), alone and beside a process that makes other calls as fast as it can.")
	fmt.Fprintln(b, "\n| mode | beside | calls made | counted |\n|---|---|--:|--:|")
	for _, t := range r.Truths {
		fmt.Fprintf(b, "| %s | %s | %.0f | %s |\n", t.Mode, t.Beside, t.Calls, t.counted())
	}
}

func (t Truth) counted() string {
	switch {
	case t.Counted == nil:
		first, _, _ := strings.Cut(t.Problem, "\n")
		return "no answer: " + first
	case t.Whole:
		return fmt.Sprintf("%.0f, of all processes", *t.Counted)
	}
	text := fmt.Sprintf("%.0f (%.1f %%)", *t.Counted, *t.Counted/t.Calls*100)
	if t.Says != "" {
		text += ", it says: " + t.Says
	}
	return text
}

func (r Report) writeOwn(b io.Writer) {
	o := r.Own
	fmt.Fprintln(b, "\n| teescope itself | CPU of one core | RSS | series | ready after |")
	fmt.Fprintln(b, "|---|--:|--:|--:|--:|")
	for _, line := range []struct {
		name string
		c    Consumption
	}{{"agent, machine idle", o.AgentIdle}, {"agent, Redis under load", o.AgentLoaded}, {"up, machine idle", o.UpIdle}} {
		fmt.Fprintf(b, "| %s | %.2f %% | %.0f MB | %d | %.2f s |\n", line.name, line.c.CPUPercent, line.c.ResidentMB, line.c.Series, line.c.Ready)
	}
	fmt.Fprintf(b, "\nA scrape takes %.1f ms (%.1f-%.1f, n=%d). Start of `up` to the first value: %.2f s, to the first rate: %.2f s. Binary: %.0f MB.\n",
		o.ScrapeSeconds.Median*1e3, o.ScrapeSeconds.Low*1e3, o.ScrapeSeconds.High*1e3, o.ScrapeSeconds.N, o.FirstValue, o.FirstChart, o.BinaryMB)
}
