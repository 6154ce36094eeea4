// SPDX-License-Identifier: Apache-2.0

package transition

import (
	"cmp"
	"slices"
)

// Kind describes which two calls are a pair, and which time is between them.
type Kind string

// The kinds. A call alone is a pair with itself.
const (
	Begin     Kind = "ocall_in_ecall" // between the beginnings of an ECALL and of an OCALL in it
	End       Kind = "last_in_ecall"  // between the ends of the last OCALL in an ECALL and of the ECALL
	NextOCall Kind = "next_ocall"     // between the end of an OCALL and the beginning of the next one in the same ECALL
	NextECall Kind = "next_ecall"     // between the end of an ECALL and the beginning of the next one of the thread
	OCall     Kind = "ocall"          // from beginning to end
	ECall     Kind = "ecall"          // from beginning to end, with its OCALLs
)

// PairKey identifies a pair by the names of its calls.
type PairKey struct {
	Kind     Kind
	From, To string
}

// PairCount is the number of occurrences of a pair, and the time in it.
type PairCount struct {
	N, NS  uint64
	Within [4]uint64 // below 1 us, from there to 5 us, to 10 us, and to 20 us
}

// Pairs are the pairs of some processes.
type Pairs map[PairKey]PairCount

// Add adds to the count of a pair.
func (p Pairs) Add(key PairKey, n PairCount) {
	sum := p[key]
	sum.N += n.N
	sum.NS += n.NS
	for i := range sum.Within {
		sum.Within[i] += n.Within[i]
	}
	p[key] = sum
}

// Pair is a row of an answer.
type Pair struct {
	Kind Kind    `json:"kind"`
	From string  `json:"from"`
	To   string  `json:"to"`
	N    uint64  `json:"n"`  // how often it was seen
	Of   uint64  `json:"of"` // how often the second call was seen where it can be part of such a pair
	Mean float64 `json:"mean_seconds"`
	// Under is how often the time was below 1, 5, 10 and 20 us.
	Under  [4]uint64 `json:"under_1_5_10_20_us"`
	Advice Advice    `json:"advice,omitempty"`
}

// maxPairs is the maximum number of pairs in an answer.
const maxPairs = 128

// List returns the pairs that were seen most often, with advice, and the number of those that are omitted.
func (p Pairs) List() (list []Pair, leftOut int) {
	of := p.denominators()
	for key, n := range p {
		row := Pair{Kind: key.Kind, From: key.From, To: key.To, N: n.N, Of: of(key), Mean: float64(n.NS) / float64(max(n.N, 1)) / 1e9}
		sum := uint64(0)
		for i, within := range n.Within {
			sum += within
			row.Under[i] = sum
		}
		row.Advice = row.advise()
		list = append(list, row)
	}
	slices.SortFunc(list, func(a, b Pair) int {
		return cmp.Or(-cmp.Compare(a.N, b.N), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	leftOut = max(len(list)-maxPairs, 0)
	return list[:len(list)-leftOut], leftOut
}

// denominators returns a function for the number of calls of which a pair is a part: the second calls, or the OCALLs in the
// same ECALL. Above the budget, calls are seen only in windows, so both are counted where the same windows are needed.
func (p Pairs) denominators() func(PairKey) uint64 {
	inside, ecalls := map[string]uint64{}, map[string]uint64{}
	for key, n := range p {
		switch key.Kind {
		case Begin:
			inside[key.To] += n.N
		case ECall:
			ecalls[key.To] += n.N
		}
	}
	return func(key PairKey) uint64 {
		n := p[key].N
		switch key.Kind {
		case End:
			return max(n, p[PairKey{Begin, key.From, key.To}].N)
		case NextOCall:
			return max(n, inside[key.To])
		case NextECall:
			return max(n, ecalls[key.To])
		}
		return n
	}
}
