// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/sampling"
)

// On the real kernel: the cost of system calls is measured at the start, and is the one that a loop beside it shows.
func TestTheStartMeasuresWhatProbesCost(t *testing.T) {
	c := start(t, Options{})
	m := c.kernel.startCosts
	t.Logf("without %.0f, with %.0f, costs %+v, took %v", m.without, m.with, m.costs, m.spent)
	for event := range sampling.Events {
		if m.with[event] != 0 && m.costs.Path[event] == 0 || m.with[event] == 0 && m.costs.Path[event] != 0 {
			t.Errorf("%s: %.0f ns with the probe, a path of %v", event, m.with[event], m.costs.Path[event])
		}
	}
	if !c.kernel.attached("syscall") || !c.kernel.attached("page_fault_user") {
		t.Errorf("after the measurement: %+v", c.kernel.status)
	}
	if m.with[sampling.Syscall] == 0 {
		t.Skip("the machine was too busy to measure")
	}
	samples := scrape(t, c)
	with, without := sum(samples, "teescope_self_loop_seconds", "event", "syscall", "probe", "attached"), sum(samples, "teescope_self_loop_seconds", "event", "syscall", "probe", "absent")
	if without <= 0 || with <= without || with > 20e-6 {
		t.Errorf("a call takes %v s without the probe and %v s with it", without, with)
	}
}

// Implausible times leave the constants, and are not shown as measured.
func TestImplausibleCostsAreNotUsed(t *testing.T) {
	var log bytes.Buffer
	m := newStartCosts(slog.New(slog.NewTextHandler(&log, nil)))
	k := made(t)
	m.without[sampling.Syscall], m.with[sampling.Syscall] = 300, 200
	m.without[sampling.PageFault], m.with[sampling.PageFault] = 700, 800
	m.spent = time.Minute // no further loop is run
	m.end(k)
	if m.with[sampling.Syscall] != 0 || m.costs.Path[sampling.Syscall] != 0 || m.costs.Path[sampling.PageFault] == 0 {
		t.Errorf("%+v", m)
	}
	if !strings.Contains(log.String(), "not plausible") || !strings.Contains(log.String(), "cost of counting one event") {
		t.Errorf("logged %s", log.String())
	}
}
