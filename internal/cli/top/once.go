// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/teescope/teescope/internal/lib/jsonapi"
)

// Once scrapes twice, an interval apart, and writes one table.
func Once(ctx context.Context, w io.Writer, source Source, o Options, asJSON bool) error {
	before, err := source.Scrape(ctx)
	if ctx.Err() != nil { // an agent of this process that ends answers without its metrics
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(o.Interval):
	}
	after, err := source.Scrape(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	t := compare(before, after)
	if t.Restarted {
		return errors.New("the agent was restarted between the two scrapes, so there are no rates: try again")
	}
	t.Rows = choose(t.Rows, o.Filter, o.Sort, o.Reverse)
	if asJSON {
		return writeJSON(w, o.Target, t)
	}
	return writeTable(w, t)
}

// writeTable writes all columns. Each is as wide as its longest value.
func writeTable(w io.Writer, t rateTable) error {
	all := make([]positioned, 0, len(columns()))
	for _, c := range columns() {
		if c.tee && !t.TEE {
			continue
		}
		p := positioned{c, c.long, ansi.StringWidth(c.long)}
		for i := range t.Rows {
			p.width = max(p.width, ansi.StringWidth(c.cell(&t.Rows[i])))
		}
		all = append(all, p)
	}
	var b strings.Builder
	line := func(cell func(*positioned) string) {
		var cells []string
		for i := range all {
			cells = append(cells, all[i].fit(cell(&all[i])))
		}
		b.WriteString(strings.TrimRight(strings.Join(cells, "  "), " ") + "\n")
	}
	line(func(p *positioned) string { return p.title })
	for i := range t.Rows {
		line(func(p *positioned) string { return p.cell(&t.Rows[i]) })
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// The JSON of a table. Values that were not measured are omitted.
type jsonTable struct {
	Target    string         `json:"target"`
	Time      time.Time      `json:"time"`
	Seconds   float64        `json:"seconds"`
	Workloads []jsonWorkload `json:"workloads"`
	VMs       []jsonVM       `json:"virtual_machines,omitempty"`
}

type jsonWorkload struct {
	Workload  string             `json:"workload"`
	Container string             `json:"container,omitempty"`
	Pod       string             `json:"pod,omitempty"`
	Namespace string             `json:"namespace,omitempty"`
	Kind      string             `json:"kind"`
	TEE       string             `json:"tee"`
	Runtime   string             `json:"runtime,omitempty"`
	PerSecond map[string]float64 `json:"per_second"`
	Now       map[string]float64 `json:"now"`
	Syscalls  map[string]float64 `json:"syscalls_per_second,omitempty"`
	Faults    map[string]float64 `json:"faults_per_second,omitempty"`
}

func writeJSON(w io.Writer, target string, t rateTable) error {
	out := jsonTable{Target: target, Time: t.At.UTC(), Seconds: t.Over.Seconds(), Workloads: []jsonWorkload{}, VMs: jsonVMs(t.VMs)}
	for i := range t.Rows {
		out.Workloads = append(out.Workloads, jsonRow(&t.Rows[i]))
	}
	if err := jsonapi.Print(w, out); err != nil {
		return fmt.Errorf("writing the table as JSON: %w", err)
	}
	return nil
}

func jsonRow(r *rateRow) jsonWorkload {
	j := jsonWorkload{
		Workload: r.Workload, Container: r.Container, Pod: r.Pod, Namespace: r.Namespace,
		Kind: r.Kind, TEE: r.TEE, Runtime: r.Runtime,
		PerSecond: measured(map[string]float64{
			"cpu_seconds": r.CPU, "run_queue_wait_seconds": r.Waiting, "calls": r.Calls, "faults": r.Faults,
			"voluntary_switches": r.Voluntary, "involuntary_switches": r.Involuntary,
			"user_cpu_seconds":   one(r.Rates, Series{Family: cpuSeconds, A: "user"}),
			"system_cpu_seconds": one(r.Rates, Series{Family: cpuSeconds, A: "system"}),
		}),
		Now: measured(map[string]float64{
			"resident_memory_bytes": r.Resident, "processes": r.Processes, "threads": r.Threads,
		}),
		Syscalls: map[string]float64{}, Faults: map[string]float64{},
	}
	for s, v := range r.Rates {
		switch {
		case v == 0:
		case s.Family == syscalls:
			j.Syscalls[s.A] = v
		case s.Family == faults:
			j.Faults[s.A] += v
		}
	}
	measured(j.Faults)
	return j
}

func measured(all map[string]float64) map[string]float64 {
	for name, v := range all {
		if !known(v) {
			delete(all, name)
		}
	}
	return all
}
