// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"math"
	"strings"
	"testing"
)

func TestCostsInSeconds(t *testing.T) {
	low, high := OCALL.CPU(100_000, Clock{Low: 3e9, High: 3e9, Measured: true})
	if math.Abs(low-0.8/3) > 1e-9 || math.Abs(high-1.4/3) > 1e-9 {
		t.Errorf("100,000 OCALLs at 3 GHz cost %v to %v CPU seconds", low, high)
	}
	unknownLow, unknownHigh := OCALL.CPU(100_000, UnknownClock)
	if unknownLow > low || unknownHigh < high {
		t.Error("an unknown clock must widen the range")
	}
	if a := UnknownClock.Assumption(); !strings.Contains(a, "not known") {
		t.Error(a)
	}
	for _, c := range []Cycles{OCALL, Exitless, AEX, Paging, Switch, Fault, Syscall, Exception, HostException, Handed, Added} {
		if c.Low <= 0 || c.High < c.Low || c.Source == "" || c.What == "" {
			t.Errorf("cost %+v", c)
		}
	}
}
