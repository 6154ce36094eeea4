// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// A program is found when a device is opened, and not only by the next scan, which never comes here: the clock stands still. So a
// program that ends before has its counts.
func TestAProgramIsFoundWhenADeviceIsOpened(t *testing.T) {
	o := options(modeOn, 0)
	o.Roots.Dev = t.TempDir()
	device := filepath.Join(o.Roots.Dev, "sgx_enclave")
	if err := os.WriteFile(device, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o.Detector = tee.NewDetector(o.Roots, nil)
	b := startWith(t, o)
	look(t, b)
	at := time.Now()
	b.now, b.scanned = func() time.Time { return at }, at.Add(-scanEvery/2)
	app := run(t, sdkApp(t, "openedapp"))
	app.do(t, "ecall 0 0 1") // it is loaded
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	knows := func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		p := b.processes.Known(uint32(app.Process.Pid))
		return p != nil && len(p.Files) > 0
	}
	if knows() {
		t.Error("the program is known without a scan")
	}
	f, err := os.Open(device)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	waittest.Until(t, "the program to be found after a device was opened", knows)
}

// A tenant that opens a device without pause causes one step for each scan.
func TestOpeningsAreNotFollowedBeforeTheScan(t *testing.T) {
	b := &Backend{opts: Options{Detector: tee.NewDetector(tee.Roots{Dev: t.TempDir()}, nil)}, opened: &tee.Opened{C: make(chan struct{})}}
	if openings(b) == nil {
		t.Error("an opening is not followed")
	}
	hurry(b)
	if openings(b) != nil {
		t.Error("an opening is followed although a scan follows soon")
	}
}

// With many processes a scan follows an opening later, because it reads each of them, and never later than without an opening.
func TestScansAfterOpeningsAreBounded(t *testing.T) {
	scanned := time.Unix(1000, 0)
	b := &Backend{processes: process.NewTable(host.Processes{}, 1, func() time.Time { return scanned }), scanned: scanned}
	for _, tt := range []struct {
		processes int
		hurried   bool
		want      time.Duration
	}{
		{0, false, scanEvery}, {0, true, 100 * time.Millisecond},
		{1, false, scanEvery}, {1, true, 110 * time.Millisecond},
		{150, true, 1600 * time.Millisecond}, {190, true, scanEvery}, {250, true, scanEvery}, {250, false, scanEvery},
	} {
		for b.processes.Len() < tt.processes {
			tgid := uint32(1 + b.processes.Len())
			b.processes.Add(tgid, workload.Identity{Name: "app", Kind: workload.Program}, process.Process{})
		}
		b.hurried = tt.hurried
		if got := nextScan(b).Sub(scanned); got != tt.want {
			t.Errorf("with %d processes and hurried %t, the next scan follows after %s, want %s", tt.processes, tt.hurried, got, tt.want)
		}
	}
}
