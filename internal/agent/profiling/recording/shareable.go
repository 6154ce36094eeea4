// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"slices"
	"strconv"

	pprof "github.com/google/pprof/profile"

	"github.com/teescope/teescope/internal/run/profile"
)

// Shareable returns a profile without the samples of a process, and without addresses that are of use against the kernel or a program
// that still runs. Addresses in files are their offsets, by which names can be found later. Those of the kernel are left out.
func Shareable(p *pprof.Profile, except int) *pprof.Profile {
	pid := strconv.Itoa(except)
	p.Sample = slices.DeleteFunc(p.Sample, func(s *pprof.Sample) bool { return slices.Contains(s.Label[profile.PID], pid) })
	for _, s := range p.Sample {
		delete(s.Label, profile.TCS)
		delete(s.Label, profile.EnclaveBase)
	}
	for _, l := range p.Location {
		switch m := l.Mapping; {
		case m == nil || m.Start >= kernelStart:
			l.Address = 0
		case l.Address != 0: // a frame that is not a function has none
			l.Address = l.Address - m.Start + m.Offset
		}
	}
	for _, m := range p.Mapping {
		if m.Start < kernelStart {
			m.Start, m.Limit = m.Offset, m.Limit-m.Start+m.Offset
		}
	}
	return p.Compact()
}
