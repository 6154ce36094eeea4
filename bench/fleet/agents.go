// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

// perWorkload lists an agent's families for each workload besides its system calls, as the agent writes them.
var perWorkload = []struct{ name, kind, label, values string }{
	{"teescope_context_switches_total", "counter", "kind", "voluntary involuntary"},
	{"teescope_page_faults_total", "counter", "mode", "user kernel"},
	{"teescope_page_faults_handled_total", "counter", "kind", "minor major"},
	{"teescope_page_cache_operations_total", "counter", "operation", "insertion access dirty_page dirty_buffer"},
	{"teescope_cpu_seconds_total", "counter", "mode", "user system"},
	{"teescope_run_queue_wait_seconds_total", "counter", "", ""},
	{"teescope_cpu_migrations_total", "counter", "", ""},
	{"teescope_processes", "gauge", "", ""},
	{"teescope_threads", "gauge", "", ""},
	{"teescope_resident_memory_bytes", "gauge", "", ""},
}

const (
	workloads = 100
	calls     = 80
	// seriesPerAgent is the number of series that agent.write writes: 100 times 80 system calls and 17 others, and idle
	// CPU.
	seriesPerAgent = workloads * (calls + 17)
)

// agent answers scrapes as an agent on a busy machine does. Its counters grow by random amounts, because regular ones
// would compress too well.
type agent struct {
	number int
	born   time.Time
	rates  []float64 // events per second, by series
}

func newAgent(number int) *agent {
	a := &agent{number: number, born: time.Now(), rates: make([]float64, seriesPerAgent)}
	for i := range a.rates {
		a.rates[i] = rand.ExpFloat64() * 1000 //nolint:gosec // no secret
	}
	return a
}

// listen serves an agent on a free port and returns its address.
func listen(a http.Handler) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() { _ = http.Serve(l, a) }() //nolint:gosec // the only client is ours
	return l.Addr().String(), nil
}

// ServeHTTP implements http.Handler.
func (a *agent) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	var out bytes.Buffer
	a.write(&out)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = w.Write(out.Bytes())
}

func (a *agent) write(out *bytes.Buffer) {
	age, series := time.Since(a.born).Seconds(), 0
	one := func(name, workload, label, value string) {
		fmt.Fprintf(out, `%s{workload=%q,container="",pod="",namespace=""`, name, workload)
		if label != "" {
			fmt.Fprintf(out, `,%s=%q`, label, value)
		}
		noise := 1 + 0.1*rand.Float64()/(1+age) //nolint:gosec // no secret
		v := a.rates[series] * age * noise
		out.WriteString("} " + strconv.FormatFloat(float64(int64(v)), 'g', -1, 64) + "\n")
		series++
	}
	fmt.Fprintln(out, "# TYPE teescope_syscalls_total counter")
	for w := range workloads {
		for call := range calls {
			one("teescope_syscalls_total", fmt.Sprintf("worker%03d", w), "syscall", fmt.Sprintf("call%d", call))
		}
	}
	for _, f := range perWorkload {
		fmt.Fprintf(out, "# TYPE %s %s\n", f.name, f.kind)
		values := bytes.Fields([]byte(f.values))
		if len(values) == 0 {
			values = [][]byte{nil}
		}
		for w := range workloads {
			for _, value := range values {
				one(f.name, fmt.Sprintf("worker%03d", w), f.label, string(value))
			}
		}
	}
}
