// SPDX-License-Identifier: Apache-2.0

package driver

// lossNames are the values of the label what, in the order of enum loss.
var lossNames = [...]string{"enclaves", "groups", "pairs"}

// counts are events on the pages of an enclave, of a group's enclaves or of all enclaves, by enum count.
type counts [nCounts]uint64

// Add implements attribution.Sum.
func (c *counts) Add(from *counts) {
	for i, n := range from {
		c[i] += n
	}
}

// Subtract implements attribution.Sum.
func (c *counts) Subtract(from *counts) {
	for i, n := range from {
		c[i] -= n
	}
}

func (t *totals) add(from *totals) {
	for i, n := range from.Count {
		t.Count[i] += n
	}
	for i, n := range from.Total {
		t.Total[i] += n
	}
	for i := range from.Times {
		for j, n := range from.Times[i].Bucket {
			t.Times[i].Bucket[j] += n
		}
		t.Times[i].SumNS += from.Times[i].SumNS
	}
}
