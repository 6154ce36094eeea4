// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"errors"
	"fmt"
	"os"
)

// Limits of tables for unwinding.
const (
	maxRows     = 1 << 22 // of all files: 32 MiB
	MaxMappings = maxMappings
	MaxUnwound  = maxUnwound // processes
)

// Code is a mapping of code with the rows of its file.
type Code struct {
	Start, End uint64
	Bias       uint64 // an address in the process less the one in the file
	First, N   int    // the rows
}

// Unwinds reports whether stacks are unwound by tables.
func (s *Sampler) Unwinds() bool { return s.unwinds }

// Rows are those of all files, which the eBPF program reads. A row must be written before a process uses it.
func (s *Sampler) Rows() []uint64 { return s.rows }

// SetCode sets the code of a process, in ascending order. Until then, its stacks are found by frame pointers.
func (s *Sampler) SetCode(p Process, all []Code) error {
	if len(all) > MaxMappings {
		return fmt.Errorf("more than %d mappings", MaxMappings)
	}
	value := codes{Mappings: uint32(len(all))}
	for i, c := range all {
		value.Code[i] = code{Start: c.Start, End: c.End, Bias: c.Bias, First: uint32(c.First), Rows: uint32(c.N)}
	}
	return s.object.Map("unwound").Put(keyOf(p), &value)
}

// Forget removes the code of a process, whose stacks are found by frame pointers from then on.
func (s *Sampler) Forget(p Process) error {
	if err := s.object.Map("unwound").Delete(keyOf(p)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the mappings of process %d: %w", p.PID, err)
	}
	return nil
}

func keyOf(p Process) processKey {
	return processKey{Start: uint64(p.Start), Image: p.Image, TGID: uint32(p.PID)}
}
