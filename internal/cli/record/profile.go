// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"

	"github.com/teescope/teescope/internal/run"
)

// Sampling is samples that are being taken.
type Sampling interface {
	// End stops sampling and returns the profile. Its list of functions omits the process except, or none for 0.
	End(except int) (run.Profile, error)
}

// sample takes samples for the profile of a repetition until the returned function is called with the error of the repetition, which
// it returns. A profile that cannot be made is noted, and does not end the recording.
func (r *recording) sample(ctx context.Context, repetition int) (done func(error) error) {
	if r.Profile == nil {
		return func(err error) error { return err }
	}
	sampling, err := r.Profile(ctx)
	if err != nil {
		r.note("no profile: %v", err)
		return func(err error) error { return err }
	}
	return func(failed error) error {
		p, err := sampling.End(r.agent.pid())
		switch {
		case failed != nil:
			return failed
		case err != nil:
			r.note("no profile of repetition %d: %v", repetition, err)
			return nil
		case len(p.Functions) == 0:
			r.note("the profile of repetition %d has no samples", repetition)
			return nil
		}
		p.Repetition = repetition
		return r.out.Profile(p)
	}
}

// pid returns the process of an agent of the recorder's own, or 0.
func (a *Agent) pid() int {
	if a.own == nil {
		return 0
	}
	return a.own.cmd.Process.Pid
}
