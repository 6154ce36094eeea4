// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"slices"

	"github.com/teescope/teescope/internal/analysis"
)

// limit drops entries beyond the bounds, and reports whether it has dropped any. It drops a sixteenth more than
// necessary, so that it rarely runs. It drops entries of the machine with the most entries, so that one machine cannot
// displace the entries of others. It drops the findings of severity info first, and then the oldest.
func (s *Store) limit() bool {
	if len(s.entries) <= maxEntries && s.file.lines <= maxBytes {
		return false
	}
	entries, bytes := 0, int64(0)
	by := make(map[string][]*Entry)
	for i := range s.entries {
		e := &s.entries[i]
		if entries, bytes = entries+1, bytes+int64(e.size); !e.Open() {
			by[e.Instance] = append(by[e.Instance], e)
		}
	}
	for _, of := range by {
		slices.SortStableFunc(of, func(a, b *Entry) int { // the first to go is the last
			return cmp.Or(cmp.Compare(keeping(b), keeping(a)), cmp.Compare(b.Number, a.Number))
		})
	}
	gone := make(map[uint64]bool)
	for entries > maxEntries*15/16 || bytes > maxBytes*15/16 {
		instance, most := "", 0
		for name, of := range by {
			if len(of) > most || len(of) == most && name < instance {
				instance, most = name, len(of)
			}
		}
		if most == 0 {
			break // all are open: the ledger bounds them
		}
		e := by[instance][most-1]
		by[instance] = by[instance][:most-1]
		gone[e.Number] = true
		entries, bytes = entries-1, bytes-int64(e.size)
		s.lost.Entries++
		s.lost.Until = latest(s.lost.Until, e.Ended)
	}
	s.entries = slices.DeleteFunc(s.entries, func(e Entry) bool { return gone[e.Number] })
	s.file.lines = bytes
	s.index()
	return len(gone) > 0
}

// keeping is higher for entries that are kept longer.
func keeping(e *Entry) int {
	if e.Severity == analysis.Info {
		return 0
	}
	return 1
}
