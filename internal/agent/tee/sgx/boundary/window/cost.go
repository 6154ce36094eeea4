// SPDX-License-Identifier: Apache-2.0

package window

import (
	"errors"
	"reflect"
	"time"
)

// CostEmulated is the cost of a hit on an instruction that the kernel emulates, about 0.6 us. It is the unit of
// all costs.
const CostEmulated = 1

// function is a function of one instruction, a return, which the kernel does not emulate. Mechanisms probe it to
// measure their cost without slowing another program.
//
//go:noinline
func function() {}

// Address returns the address of function in this process.
func Address() uint64 { return uint64(reflect.ValueOf(function).Pointer()) }

// ErrNotMeasurable means that the compiler has changed function.
var ErrNotMeasurable = errors.New("this program was built in a way that prevents measuring it")

// MeasureHit measures a call of function while it is probed. It returns the cost of the hit in units of CostEmulated, from 1 to 255.
func MeasureHit() uint8 {
	const (
		hits  = 50
		cheap = 600 * time.Nanosecond
	)
	best := time.Hour // minimum of a few rounds, because others may be interrupted
	for range 4 {
		began := time.Now()
		for range hits {
			function()
		}
		best = min(best, time.Since(began))
	}
	return uint8(min(max(best/hits/cheap, 1), 255))
}
