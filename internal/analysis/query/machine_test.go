// SPDX-License-Identifier: Apache-2.0

package query

import "testing"

func TestPerMachine(t *testing.T) {
	var m PerMachine[int]
	if _, ok := m.Get("a:1"); ok {
		t.Error("an empty value has a machine")
	}
	for i, instance := range []string{"a:2", "a:1", "node", "[::1]:9"} {
		m.Set(instance, i+1)
	}
	for instance, want := range map[string]int{"a:1": 2, "a:2": 1, "a:3": 2, "node": 3, "[::1]:1": 4, "b:1": 0, "nod": 0, "a": 0, "": 0} {
		if got, ok := m.Get(instance); got != want || ok != (want > 0) {
			t.Errorf("%q: %d, %v, want %d", instance, got, ok, want)
		}
	}
	m.Set("", 9)
	if got, _ := m.Get("b:1"); got != 9 {
		t.Errorf("the only machine has %d", got)
	}
}
