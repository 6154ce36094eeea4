// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"syscall"
	"testing"
)

func TestADetachedProbeSeesNothingUntilItIsReattached(t *testing.T) {
	o := open(t, 1)
	c := counts(t, o)
	way := Way{Program: "typed", Mechanism: TypedTracepoint, Target: "sys_enter"}
	if _, err := o.Attach(Probe{Name: "test", Ways: []Way{way}}); err != nil {
		t.Fatal(err)
	}
	call := func() (counted uint64) {
		before := c[0]
		for range 100 {
			_, _, _ = syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
		}
		return c[0] - before
	}
	for range 3 {
		if n := call(); n < 300 {
			t.Errorf("counted %d in steps of 3 for 100 calls", n)
		}
		if err := errors.Join(o.Detach("typed"), o.Detach("typed")); err != nil {
			t.Fatal(err)
		}
		if n := call(); n != 0 {
			t.Errorf("counted %d while it was detached", n)
		}
		if err := errors.Join(o.Reattach("typed"), o.Reattach("typed")); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(o.Detach("second"), o.Reattach("second")); !errors.Is(err, errNotProbe) {
		t.Errorf("a program that no probe attached: %v", err)
	}
}
