// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"cmp"
	"math"
	"slices"
)

// source is what the names of some locations are read from. Its content belongs to a workload, which can make it large.
type source struct {
	list     []int
	workload string
	cost     uint64 // bytes that are read
	read     func()
}

// readInTurn reads sources until a limit is reached; 0 is none. Workloads share it max-min fairly: next is always the source after which its
// workload has used least. So a workload that needs less than its equal share gets all its names, however much others need.
func readInTurn(sources []source, limit uint64, names []Name) {
	used, left := map[string]uint64{}, cmp.Or(limit, math.MaxUint64)
	for len(sources) > 0 {
		next := 0
		for i, s := range sources {
			if best := sources[next]; used[s.workload]+s.cost < used[best.workload]+best.cost {
				next = i
			}
		}
		s := sources[next]
		sources = slices.Delete(sources, next, next+1)
		if s.cost > left {
			for _, i := range s.list {
				names[i].Reason = costly
			}
			continue
		}
		left -= s.cost
		used[s.workload] += s.cost
		s.read()
	}
}
