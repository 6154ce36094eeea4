// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"cmp"
	"slices"
)

// maps are mappings in the order of their addresses, none of which overlap.
type maps struct {
	list []*Mapping
	last *Mapping // that was found; nil if the list has changed
}

// find returns the mapping of an address, or nil. Most addresses of a stack are in the mapping of the one before.
func (m *maps) find(address uint64) *Mapping {
	if m.last != nil && address >= m.last.Start && address < m.last.End {
		return m.last
	}
	at, found := slices.BinarySearchFunc(m.list, address, func(m *Mapping, a uint64) int { return cmp.Compare(m.Start, a) })
	if !found {
		at--
	}
	if at < 0 || address >= m.list[at].End {
		return nil
	}
	m.last = m.list[at]
	return m.last
}

// add puts a mapping instead of what it covers. It returns how many more there are.
func (m *maps) add(one *Mapping) int {
	m.last = nil
	before := len(m.list)
	from, _ := slices.BinarySearchFunc(m.list, one.Start, func(m *Mapping, a uint64) int { return cmp.Compare(m.End, a+1) })
	to := from
	for to < len(m.list) && m.list[to].Start < one.End {
		to++
	}
	var put []*Mapping
	if from < to {
		if first := m.list[from]; first.Start < one.Start {
			left := *first
			left.End = one.Start
			put = append(put, &left)
		}
	}
	put = append(put, one)
	if from < to {
		if last := m.list[to-1]; last.End > one.End {
			right := *last
			right.Offset += one.End - last.Start
			right.Start = one.End
			put = append(put, &right)
		}
	}
	m.list = slices.Replace(m.list, from, to, put...)
	return len(m.list) - before
}

// remove removes the generated code that begins at an address. It returns how many mappings fewer there are.
func (m *maps) remove(start uint64) int {
	at, found := slices.BinarySearchFunc(m.list, start, func(m *Mapping, a uint64) int { return cmp.Compare(m.Start, a) })
	if !found || m.list[at].Symbol == "" {
		return 0
	}
	m.list, m.last = slices.Delete(m.list, at, at+1), nil
	return 1
}
