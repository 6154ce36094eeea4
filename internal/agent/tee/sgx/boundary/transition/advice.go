// SPDX-License-Identifier: Apache-2.0

package transition

// Advice is a change that could make a pair cheaper. The rules and their numbers are those of sgx-perf (Weichbrodt, Aublin and
// Kapitza: sgx-perf: A Performance Analysis Tool for Intel SGX Enclaves, Middleware 2018, section 4.3).
type Advice string

// The advice.
const (
	moveBefore Advice = "move_before" // make the OCALL before the ECALL
	moveBehind Advice = "move_behind" // make the OCALL after the ECALL
	batch      Advice = "batch"       // make one call for several
	merge      Advice = "merge"       // make one call of the two
	moveIn     Advice = "move_in"     // do in the enclave what the OCALL does
)

// minCalls is the minimum number of calls for advice. A share that is measured with so many calls differs from the true one by at
// most 0.1 in 95 of 100 cases. sgx-perf has no such limit, because it evaluates complete recordings.
const minCalls = 100

// advise applies the rules. There is no advice for a single ECALL: a short one may do what must be done in the enclave.
//
// sgx-perf evaluates the durations below their 95th percentile. Here all are evaluated, which gives advice a little later.
func (p Pair) advise() Advice {
	if p.Of < minCalls {
		return ""
	}
	switch p.Kind {
	case Begin:
		if p.nearEdge() {
			return moveBefore
		}
	case End:
		if p.nearEdge() {
			return moveBehind
		}
	case NextOCall, NextECall:
		if !p.followsSoon() {
			return ""
		}
		if p.From == p.To {
			return batch
		}
		return merge
	case OCall:
		if p.share(0) > 0.35 || p.share(1) > 0.50 || p.share(2) > 0.65 {
			return moveIn
		}
	}
	return ""
}

// share returns the part of all calls whose time is below a limit.
func (p Pair) share(limit int) float64 { return float64(p.Under[limit]) / float64(p.Of) }

// nearEdge reports whether an OCALL is near the beginning or the end of its ECALL.
func (p Pair) nearEdge() bool {
	return p.share(2)+0.75*(p.share(3)-p.share(2)) > 0.5
}

// followsSoon reports whether the second call mostly follows the first, and soon.
func (p Pair) followsSoon() bool {
	const most, soon = 0.35, 0.35
	of := func(limit int) float64 { return float64(p.Under[limit]) / float64(p.N) }
	weighted := of(0) + 0.75*(of(1)-of(0)) + 0.5*(of(2)-of(1)) + 0.25*(of(3)-of(2))
	return float64(p.N)/float64(p.Of) > most && weighted > soon
}
