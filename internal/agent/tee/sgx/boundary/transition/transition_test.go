// SPDX-License-Identifier: Apache-2.0

package transition

import (
	"fmt"
	"testing"
)

// one returns one pair of the list of p. The share of the pair depends on the other pairs of p.
func one(t *testing.T, p Pairs, kind Kind, from, to string) Pair {
	t.Helper()
	list, _ := p.List()
	for _, row := range list {
		if row.Kind == kind && row.From == from && row.To == to {
			return row
		}
	}
	t.Fatalf("there is no %s %s %s in %+v", kind, from, to, list)
	return Pair{}
}

// The numbers are those of sgx-perf, at both sides of each limit.
func TestAdvice(t *testing.T) {
	for _, tt := range []struct {
		what     string
		kind     Kind
		from, to string
		n        PairCount
		others   uint64 // calls of the second function that are in no such pair
		want     Advice
	}{
		{"half of it within 10 us of the beginning", Begin, "e", "o", PairCount{N: 200, Within: [4]uint64{0, 0, 101, 0}}, 0, moveBefore},
		{"not half", Begin, "e", "o", PairCount{N: 200, Within: [4]uint64{0, 0, 100, 0}}, 0, ""},
		{"two thirds within 20 us", Begin, "e", "o", PairCount{N: 300, Within: [4]uint64{0, 0, 0, 201}}, 0, moveBefore},
		{"not two thirds", Begin, "e", "o", PairCount{N: 300, Within: [4]uint64{0, 0, 0, 200}}, 0, ""},
		{"at the end", End, "e", "o", PairCount{N: 200, Within: [4]uint64{101, 0, 0, 0}}, 0, moveBehind},
		{"at the end, but mostly not the last one", End, "e", "o", PairCount{N: 200, Within: [4]uint64{200, 0, 0, 0}}, 201, ""},
		{"the same again", NextOCall, "o", "o", PairCount{N: 180, Within: [4]uint64{180, 0, 0, 0}}, 320, batch},
		{"the same again, rarely", NextOCall, "o", "o", PairCount{N: 175, Within: [4]uint64{175, 0, 0, 0}}, 325, ""},
		{"within 5 us", NextOCall, "o", "o", PairCount{N: 200, Within: [4]uint64{0, 94, 0, 0}}, 0, batch},
		{"within 5 us, too rarely", NextOCall, "o", "o", PairCount{N: 200, Within: [4]uint64{0, 93, 0, 0}}, 0, ""},
		{"within 20 us", NextOCall, "o", "o", PairCount{N: 200, Within: [4]uint64{0, 0, 0, 200}}, 0, ""},
		{"another one", NextOCall, "a", "o", PairCount{N: 180, Within: [4]uint64{0, 0, 180, 0}}, 20, merge},
		{"ECALLs", NextECall, "e", "e", PairCount{N: 180, Within: [4]uint64{180, 0, 0, 0}}, 1, batch},
		{"another ECALL", NextECall, "e", "f", PairCount{N: 180, Within: [4]uint64{180, 0, 0, 0}}, 1, merge},
		{"below 1 us", OCall, "o", "o", PairCount{N: 200, Within: [4]uint64{71, 0, 0, 0}}, 0, moveIn},
		{"below 5 us", OCall, "o", "o", PairCount{N: 200, Within: [4]uint64{70, 31, 0, 0}}, 0, moveIn},
		{"below 10 us", OCall, "o", "o", PairCount{N: 200, Within: [4]uint64{0, 100, 31, 0}}, 0, moveIn},
		{"not below 10 us", OCall, "o", "o", PairCount{N: 200, Within: [4]uint64{0, 100, 30, 70}}, 0, ""},
		{"a short ECALL", ECall, "e", "e", PairCount{N: 200, Within: [4]uint64{200, 0, 0, 0}}, 0, ""},
		{"enough", OCall, "o", "o", PairCount{N: minCalls, Within: [4]uint64{minCalls, 0, 0, 0}}, 0, moveIn},
		{"too few", OCall, "o", "o", PairCount{N: minCalls - 1, Within: [4]uint64{minCalls - 1, 0, 0, 0}}, 0, ""},
		{"too few, of which most follow", NextOCall, "a", "o", PairCount{N: minCalls - 1, Within: [4]uint64{minCalls - 1, 0, 0, 0}}, 0, ""},
	} {
		t.Run(tt.what, func(t *testing.T) {
			p := Pairs{}
			p.Add(PairKey{tt.kind, tt.from, tt.to}, tt.n)
			all := PairCount{N: tt.n.N + tt.others} // they have no time near to anything
			switch tt.kind {
			case End, NextOCall:
				p.Add(PairKey{Begin, "e", tt.to}, all)
			case NextECall:
				p.Add(PairKey{ECall, tt.to, tt.to}, all)
			}
			row := one(t, p, tt.kind, tt.from, tt.to)
			if row.Advice != tt.want || row.N != tt.n.N || row.Of != tt.n.N+tt.others {
				t.Errorf("%+v, want the advice %q", row, tt.want)
			}
		})
	}
}

func TestPairsAreListedByNumber(t *testing.T) {
	p := Pairs{}
	for i := range maxPairs + 3 {
		key := PairKey{OCall, fmt.Sprint(i), fmt.Sprint(i)}
		p.Add(key, PairCount{N: uint64(i), NS: uint64(i) * 2000, Within: [4]uint64{0, uint64(i), 0, 0}})
		p.Add(key, PairCount{N: uint64(i), NS: uint64(i) * 4000, Within: [4]uint64{uint64(i), 0, 0, 0}})
	}
	list, leftOut := p.List()
	if len(list) != maxPairs || leftOut != 3 {
		t.Fatalf("%d are listed, %d are left out", len(list), leftOut)
	}
	first := uint64(maxPairs + 2)
	if row := list[0]; row.N != 2*first || row.Mean != 3e-6 || row.Under != [4]uint64{first, 2 * first, 2 * first, 2 * first} {
		t.Errorf("the first is %+v", row)
	}
	if list, _ := (Pairs{}).List(); list != nil {
		t.Errorf("without pairs: %v", list)
	}
}

func TestAThreadIsThatOfProc(t *testing.T) {
	if got, want := ThreadOf(7, 12_345_678_901), (Thread{7, 12_340_000_000}); got != want {
		t.Errorf("the thread is %+v, want %+v", got, want)
	}
}
