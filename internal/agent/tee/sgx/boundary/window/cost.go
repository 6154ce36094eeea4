// SPDX-License-Identifier: Apache-2.0

package window

import (
	"errors"
	"reflect"
	"time"
)

// CostEmulated is what a hit costs on an instruction that the kernel emulates, about 0.6 us: the unit of all costs.
const CostEmulated = 1

// Function is a function of one instruction, a return, which the kernel does not emulate. Mechanisms set their probes on
// it to measure them, so that no other program pays.
//
//go:noinline
func Function() {}

// Address is where Function is in this process.
func Address() uint64 { return uint64(reflect.ValueOf(Function).Pointer()) }

// ErrNotMeasurable says that the compiler has made Function into something else.
var ErrNotMeasurable = errors.New("this program was built in a way that prevents measuring it")

// MeasureHit measures a call of Function while it is probed.
func MeasureHit() uint8 {
	const (
		hits  = 50
		cheap = 600 * time.Nanosecond
	)
	best := time.Hour // of a few rounds: the others were interrupted
	for range 4 {
		began := time.Now()
		for range hits {
			Function()
		}
		best = min(best, time.Since(began))
	}
	return uint8(min(max(best/hits/cheap, 1), 255))
}
