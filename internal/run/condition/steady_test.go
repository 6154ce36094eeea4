// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"math"
	"reflect"
	"runtime"
	"testing"
	"time"
)

const (
	statBefore = "cpu  1000 200 300 5000 40 30 20 10 100 50\ncpu0 500 100 150 2500 20 15 10 5 50 25\ncpu1 500 100 150 2500 20 15 10 5 50 25\nintr 1 2\n"
	// 10 s later: user 1000, nice 100, system 100, idle 600, softirq 100, steal 100 ticks more.
	statAfter = "cpu  2000 300 400 5600 40 30 120 110 100 50\ncpu0 1 1 1 1 1 1 1 1 1 1\ncpu1 1 1 1 1 1 1 1 1 1 1\nintr 1 2\n"
)

func at(seconds float64) time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func TestTake(t *testing.T) {
	h := fake(t, map[string]string{
		"proc/stat":   statBefore,
		"proc/vmstat": "nr_free_pages 5\npswpin 3\npswpout 4\npswpoutx 9\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq":             "1200000\n",
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq":             "3400000\n",
		"sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "2\n",
		"sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count": "5\n",
	})
	want := Sample{At: at(0), Busy: 15, Steal: 0.1, Total: 66, Own: 1.5, CPUs: 2, Frequency: 3.4e9, Throttled: 7, Swapped: 7}
	got := Take(h, at(0), 1500*time.Millisecond)
	got.Total = math.Round(1e6*got.Total) / 1e6
	if got != want {
		t.Errorf("the sample is %+v, want %+v", got, want)
	}
	want = Sample{At: at(0), Busy: -1, Steal: -1, Total: -1, Frequency: -1, Throttled: -1, Swapped: -1}
	if got := Take(fake(t, nil), at(0), 0); got != want {
		t.Errorf("a sample of nothing is %+v, want %+v", got, want)
	}
}

func TestWarnings(t *testing.T) {
	var s Steadiness
	a, b := Take(fake(t, map[string]string{"proc/stat": statBefore}), at(0), 0), Take(fake(t, map[string]string{"proc/stat": statAfter}), at(10), 4*time.Second)
	a.Frequency, a.Throttled, a.Swapped = 3.4e9, 1, 10
	b.Frequency, b.Throttled, b.Swapped = 2.1e9, 4, 25
	s.Add(a)
	if got := s.Warnings(); got != nil {
		t.Errorf("one sample has the warnings %v", got)
	}
	s.Add(b)
	// Busy: 1200 ticks are 12 s, of which 4 s are its own: 0.8 CPUs in 10 s. Steal: 100 of 2000 ticks.
	want := []Warning{
		{"others_cpus", 0.8, "cpus", "other programs used 0.8 of 2 CPUs while this was recorded, and 0.8 in the busiest interval"},
		{"steal_ratio", 0.05, "ratio", "the hypervisor gave 5.0 % of the CPU time to others while this was recorded"},
		{"frequency_drop_ratio", 1 - 2.1/3.4, "ratio", "the highest CPU frequency was between 2.10 and 3.40 GHz while this was recorded"},
		{"throttled", 3, "events", "CPUs were slowed 3 times because of their temperature"},
		{"swapped_pages", 15, "pages", "15 pages of memory were swapped while this was recorded"},
	}
	got := s.Warnings()
	for i := range got {
		got[i].Value = math.Round(1e9*got[i].Value) / 1e9
	}
	want[2].Value = math.Round(1e9*want[2].Value) / 1e9
	if !reflect.DeepEqual(got, want) {
		t.Errorf("warnings are\n%v, want\n%v", got, want)
	}
}

// TestSteady has a busy program on a machine that does nothing else, and one short burst of another.
func TestSteady(t *testing.T) {
	var s Steadiness
	sample := Sample{At: at(0), CPUs: 2, Frequency: 3e9, Throttled: -1, Swapped: 5}
	s.Add(sample)
	for i := range 100 {
		sample.At = at(float64(i + 1))
		sample.Busy, sample.Own, sample.Total, sample.Steal = sample.Busy+1.95, sample.Own+1.9, sample.Total+2, sample.Steal+0.01
		s.Add(sample)
	}
	if got := s.Warnings(); got != nil {
		t.Errorf("a steady machine has the warnings %v", got)
	}
	sample.At, sample.Busy, sample.Total = at(101), sample.Busy+0.7, sample.Total+2
	s.Add(sample)
	if got := s.Warnings(); len(got) != 1 || got[0].Text != "other programs used 0.1 of 2 CPUs while this was recorded, and 0.7 in the busiest interval" {
		t.Errorf("a burst has the warnings %v", got)
	}
}

// TestCountsOfThisMachine burns processor time. If all of it and more is its own, nothing is left for others.
func TestCountsOfThisMachine(t *testing.T) {
	before := Take(ThisHost(), time.Now(), 0)
	for end := time.Now().Add(1200 * time.Millisecond); time.Now().Before(end); {
		runtime.Gosched()
	}
	after := Take(ThisHost(), time.Now(), time.Hour)
	if before.CPUs < runtime.NumCPU() {
		t.Errorf("%d processors, Go sees %d", before.CPUs, runtime.NumCPU())
	}
	if after.Busy <= before.Busy || after.Total <= before.Total {
		t.Errorf("the counts do not grow: %+v, %+v", before, after)
	}
	if used, ok := others(before, after); !ok || used != 0 {
		t.Errorf("%v, %v", used, ok)
	}
}

// Others that begin to use the enclave page cache make a machine unsteady, from a twentieth of its size. Without SGX there is
// nothing to say.
func TestUseOfTheEnclavePageCache(t *testing.T) {
	watch := func(size float64, others ...float64) *Steadiness {
		s := &Steadiness{}
		for i, v := range others {
			s.Add(Sample{At: at(float64(i)), Busy: -1, Steal: -1, Total: -1, Throttled: -1, Swapped: -1, EPC: size, EPCOthers: v * (1 << 20)})
		}
		return s
	}
	const size = 128 << 20
	steady, rising, none := watch(size, 10, 12, 16), watch(size, 10, 64, 10), watch(0, 0, 0)
	if w := steady.Warnings(); len(w) != 0 {
		t.Errorf("a change by 6 of 128 MiB: %+v", w)
	}
	w := rising.Warnings()
	if len(w) != 1 || w[0].Name != "epc_others_change_ratio" || w[0].Value != 54./128 || w[0].Text != "others used between 10.0 and 64.0 MiB of the 128.0 MiB of the enclave page cache while this was recorded" {
		t.Errorf("a neighbour for one sample: %+v", w)
	}
	if share, known := rising.EPCOthers(); !known || share != 28./128 {
		t.Errorf("others used %v, %v", share, known)
	}
	if _, known := none.EPCOthers(); known || len(none.Warnings()) != 0 {
		t.Error("a machine without SGX has a use of the EPC")
	}
	rising.RestartEPC()
	if _, known := rising.EPCOthers(); known || len(rising.Warnings()) != 0 {
		t.Error("it is not forgotten")
	}
	of := func(v string) []Condition { return []Condition{{EPCOthers, v, Identity}} }
	if d := Differences(of("10.0"), of("14.9")); len(d) != 0 {
		t.Errorf("a share of 10 and of 14.9 %% differ: %+v", d)
	}
	if d := Differences(of("10.0"), of("40")); len(d) != 1 || !d[0].Explains {
		t.Errorf("a share of 10 and of 40 %% do not differ: %+v", d)
	}
}
