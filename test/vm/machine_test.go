// SPDX-License-Identifier: Apache-2.0

//go:build vm

package vm

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/teescope/teescope/testbed/machine"
)

// slow counts bytes and takes its time with each write.
type slow int

func (s *slow) Write(p []byte) (int, error) {
	time.Sleep(50 * time.Millisecond)
	*s += slow(len(p))
	return len(p), nil
}

// TestASlowHostLosesNoOutput reads the output of a machine more slowly than the machine ends. QEMU forgets the output
// that its reader has not taken when the guest powers off.
func TestASlowHostLosesNoOutput(t *testing.T) {
	const size = 2 << 20
	files := image(t)
	m := machine.Machine{Kernel: kernel(t, kernels[1].version), Guest: filepath.Join(files, "init"), CPUs: 2, MemoryMiB: 512}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	var out, problems slow
	result, err := m.Run(ctx, machine.Command{
		Argv: []string{"/zeros", "2097152"}, Stdout: &out, Stderr: &problems,
		Files: func(a *machine.Archive) error { a.File("/zeros", filepath.Join(files, "zeros")); return nil },
	})
	if err != nil || result.Exit != 0 || out != size || problems != 0 {
		t.Errorf("%d bytes of output, want %d; %d bytes of errors, status %d (%v)", out, size, problems, result.Exit, err)
	}
}
