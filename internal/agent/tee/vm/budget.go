// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"errors"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
)

// CPU time of the programs for an exit and the following entry, and the additional time for an exit to user space. Measured with
// events injected on a virtual processor (docs/user/vms.md).
const (
	costOfExit     = 400 * time.Nanosecond
	costOfUserExit = 100 * time.Nanosecond
)

// costOf estimates the CPU time that the programs have taken for a virtual machine.
func (k *kernelSide) costOf(number uint32) (cost time.Duration) {
	c := k.sum(number)
	for _, n := range c.Exits {
		cost += time.Duration(n) * costOfExit
	}
	for _, n := range c.UserExits {
		cost += time.Duration(n) * costOfUserExit
	}
	return cost
}

// spent estimates the CPU time that the programs have taken, also for virtual machines that have ended.
func (k *kernelSide) spent() time.Duration {
	total := k.removed
	for number := range uint32(len(k.vms)) {
		total += k.costOf(number)
	}
	return total
}

// stop detaches all programs for good. If they were attached again, they would count the pause as the time of an exit.
func (k *kernelSide) stop(reason string) error {
	var errs []error
	for i := range k.status {
		s := &k.status[i]
		if s.Attached() {
			errs = append(errs, k.object.Detach(s.Program))
			*s = bpf.Status{Probe: s.Probe, Mechanism: bpf.NotAttached, Program: s.Program, Reason: reason}
		}
	}
	k.attached, k.stopped = false, true
	return errors.Join(errs...)
}

// keepBudget stops counting when it takes more than the budget.
func (b *Backend) keepBudget(now time.Time) {
	share, over := b.spending.Exceeded(now, b.kernel.spent())
	if !over {
		return
	}
	reason := b.spending.Reason(share)
	if err := b.kernel.stop(reason); err != nil {
		b.log.Warn("detaching from KVM", "err", err)
	}
	b.log.Warn("virtual machines are not watched any more", "reason", reason)
}
