// SPDX-License-Identifier: Apache-2.0

package bpf

import "errors"

// Trial is the result of trying one way of a probe.
type Trial struct {
	Way
	Err error // the reason why it does not attach; nil if it does
}

// Try attaches each way of a probe separately and detaches it at once. Attach uses only the first way that works. Try
// also reports the others, to describe what a kernel supports.
func (o *Object) Try(p Probe) (Status, []Trial) {
	status := Status{Probe: p.Name, Mechanism: NotAttached}
	trials := make([]Trial, 0, len(p.Ways))
	var errs []error
	for _, w := range p.Ways {
		err := try(o, w)
		trials = append(trials, Trial{Way: w, Err: err})
		if err == nil && !status.Attached() {
			status = Status{Probe: p.Name, Mechanism: w.Mechanism, Program: w.Program, Reason: w.Note}
		}
		errs = append(errs, err)
	}
	if !status.Attached() {
		status.Reason = Reason(errors.Join(errs...))
	}
	return status, trials
}

func try(o *Object, w Way) error {
	all, err := hookAll(o, w)
	return errors.Join(err, unhook(all))
}
