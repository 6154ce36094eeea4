// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// refuseReads makes all reads of processes fail until the returned function is called.
func refuseReads(b *Backend) (answer func()) {
	reads := b.processes.Host.Reads
	b.processes.Host.Reads = reader.New(reader.Options{Ready: make(chan struct{})})
	return func() { b.processes.Host.Reads = reads }
}

// refuseProbes makes all files unsafe to probe until the returned function is called.
func refuseProbes(b *Backend) (answer func()) {
	safe := b.files.Safe
	b.files.Safe = func(*window.File) error { return reader.ErrStuck }
	return func() { b.files.Safe = safe }
}

// TestAProcessThatDidNotAnswerIsCountedLater: on an overloaded machine a read of a process can pass its deadline once.
func TestAProcessThatDidNotAnswerIsCountedLater(t *testing.T) {
	for name, tt := range map[string]struct {
		refuse func(*Backend) (answer func())
		early  bool // before its files are opened, else when it has passed its first OCALL table
	}{
		"its mappings":                {refuseReads, true},
		"the mappings of its table":   {refuseReads, false},
		"the probes of all its files": {refuseProbes, true},
		"the probes of its OCALLs":    {refuseProbes, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, modeOn, 0)
			app := run(t, sdkApp(t, "sdk-late"))
			app.do(t, "ecall 0 0 1") // it is loaded
			waittest.Until(t, "the process to be known", func() bool {
				b.processes.BeginPass()
				known := b.processes.Get(uint32(app.Process.Pid)) != nil
				waitForReads(b)
				return known
			})
			if !tt.early {
				look(t, b)
			}
			answer := tt.refuse(b)
			app.do(t, "ecall 1 0 1")
			glance(t, b)
			if n := scrape(t, b)["teescope_enclave_transitions_total{kind=eenter,source=sdk_uprobe,workload=sdk-late}"]; n != 0 {
				t.Errorf("%v entries were counted while not all calls were", n)
			}
			answer()
			now := b.now
			b.now = func() time.Time { return now().Add(time.Minute) }
			look(t, b)
			app.do(t, "ecall 1 0 1")
			findOCalls(t, b, app)
			before := scrape(t, b)
			n := numbers(t, app.do(t, "ecall 300 3 4"))
			grown(t, before, scrape(t, b), ofApp("sdk-late", n[0], map[string]float64{
				"app_ocall_print": n[1], "app_ocall_read": n[2], "app_ocall_wait": n[3],
			}))
		})
	}
}
