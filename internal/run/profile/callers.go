// SPDX-License-Identifier: Apache-2.0

package profile

import "slices"

// Callers returns the samples that were taken in the kernel, without the frames of the kernel: the innermost frame is the function
// that made the system call, or in which a fault or an interrupt happened. Where no such frame is known, it has no name.
func (p *Profile) Callers() *Profile {
	of := *p
	of.Frames = slices.Concat(p.Frames, []Frame{{}})
	of.Samples = nil
	for _, s := range p.Samples {
		if !p.Frames[s.Stack[0]].Kernel {
			continue
		}
		for len(s.Stack) > 0 && p.Frames[s.Stack[0]].Kernel {
			s.Stack = s.Stack[1:]
		}
		if len(s.Stack) == 0 {
			s.Stack = []uint32{uint32(len(p.Frames))}
		}
		of.Samples = append(of.Samples, s)
	}
	return &of
}
