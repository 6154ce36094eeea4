// SPDX-License-Identifier: Apache-2.0

package exposition

import "testing"

func TestParse(t *testing.T) {
	families, err := Parse([]byte("# TYPE a counter\na{b=\"c\"} 3\n"))
	if err != nil || families["a"].GetMetric()[0].GetCounter().GetValue() != 3 {
		t.Errorf("%v, %v", families, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("# HELP a b\n{} 1\n"))
	f.Add([]byte("# TYPE a histogram\na_bucket{le=\"1\"} 3\na_sum 2\na_count 3\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		families, err := Parse(data)
		if err != nil && families != nil {
			return // what precedes the error
		}
		for name, family := range families {
			if name != family.GetName() {
				t.Errorf("the family %q is under %q", family.GetName(), name)
			}
		}
	})
}
