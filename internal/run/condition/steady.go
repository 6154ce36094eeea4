// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/text"
)

// Sample is the state of a machine at one moment. Times are in seconds of processors, since the start of the machine. A value
// of -1 is not known.
type Sample struct {
	At    time.Time
	Busy  float64 // of all processors, in programs and in the kernel for them, without interrupts
	Steal float64 // for which a hypervisor ran something else
	Total float64 // of all processors, with idle time
	Own   float64 // processor time of what is recorded
	CPUs  int     // processors online
	// Frequency is the highest of all processors in hertz: idle ones may be slower.
	Frequency float64
	Throttled int64 // times that a core was slowed because of its temperature
	Swapped   int64 // pages read from and written to swap
	// EPC is the size of the enclave page cache in bytes, and EPCOthers the part that workloads other than the recorded
	// ones use. An agent knows both. 0 is no EPC.
	EPC, EPCOthers float64
}

// Take reads a sample. own is the processor time of all that is recorded since its start, user and system.
func Take(h Host, at time.Time, own time.Duration) Sample {
	s := Sample{At: at, Own: own.Seconds(), Busy: -1, Steal: -1, Total: -1, Frequency: -1, Throttled: -1, Swapped: -1}
	if data, err := h.Proc.Read(1<<20, "stat"); err == nil {
		parseTimes(data, &s)
	}
	if data, err := h.Proc.Read(64<<10, "vmstat"); err == nil {
		s.Swapped = parseSwapped(data)
	}
	for _, cpu := range h.cpus() {
		if khz, err := strconv.ParseUint(h.value(cpuPath, cpu, "cpufreq", "scaling_cur_freq"), 10, 40); err == nil {
			s.Frequency = max(s.Frequency, 1e3*float64(khz))
		}
		if n, err := strconv.ParseUint(h.value(cpuPath, cpu, "thermal_throttle", "core_throttle_count"), 10, 53); err == nil {
			s.Throttled = max(s.Throttled, 0) + int64(n)
		}
	}
	return s
}

// tick is the unit of times in /proc/stat in seconds: 1/USER_HZ, which is 100 on every architecture that Go supports.
const tick = 0.01

// parseTimes parses proc_stat(5): the line of all processors, and the number of lines of single ones. The times of guests are
// in those of user and nice.
func parseTimes(data []byte, s *Sample) {
	const user, nice, system, idle, iowait, irq, softirq, steal, used = 0, 1, 2, 3, 4, 5, 6, 7, 8
	cpus := 0
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) <= used || !strings.HasPrefix(line, "cpu") || !strings.HasSuffix(line, "\n") {
			continue
		}
		if fields[0] != "cpu" {
			cpus++
			continue
		}
		var times [used]float64
		for i := range times {
			n, err := strconv.ParseUint(fields[1+i], 10, 53)
			if err != nil {
				return
			}
			times[i] = float64(n) * tick
		}
		s.Busy = times[user] + times[nice] + times[system]
		s.Steal = times[steal]
		s.Total = s.Busy + s.Steal + times[idle] + times[iowait] + times[irq] + times[softirq]
	}
	s.CPUs = cpus
}

// parseSwapped adds the pages that /proc/vmstat counts as read from swap and written to it.
func parseSwapped(data []byte) int64 {
	total, found := int64(0), 0
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "pswpin" && name != "pswpout" {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 62)
		if err != nil || n < 0 {
			return -1
		}
		total += n
		found++
	}
	if found != 2 {
		return -1
	}
	return total
}

// Steadiness watches the samples of a recording. It keeps a few numbers, however many samples there are. The zero value is
// ready.
type Steadiness struct {
	first, last      Sample
	n                int
	peak             float64 // processors that others used in the busiest interval
	slowest, fastest float64 // frequencies in hertz; 0 if none is known
	epc              epcUse
}

// epcUse is what others use of the enclave page cache.
type epcUse struct {
	size, least, most float64 // in bytes
	sum               float64 // of the shares of the size
	n                 int
}

func (e *epcUse) add(s Sample) {
	if s.EPC <= 0 {
		return
	}
	if e.n == 0 {
		e.least, e.most = s.EPCOthers, s.EPCOthers
	}
	e.size, e.least, e.most = s.EPC, min(e.least, s.EPCOthers), max(e.most, s.EPCOthers)
	e.sum += s.EPCOthers / s.EPC
	e.n++
}

// RestartEPC discards the use of the enclave page cache by others, because a part of it belongs to a recorded workload.
func (s *Steadiness) RestartEPC() { s.epc = epcUse{} }

// EPCOthers returns the mean share of the enclave page cache that others used, and whether it is known.
func (s *Steadiness) EPCOthers() (share float64, known bool) {
	return s.epc.sum / float64(max(1, s.epc.n)), s.epc.n > 0
}

// Add adds a sample that was taken after those before it.
func (s *Steadiness) Add(next Sample) {
	s.epc.add(next)
	if next.Frequency > 0 {
		s.fastest = max(s.fastest, next.Frequency)
		if s.slowest == 0 || next.Frequency < s.slowest {
			s.slowest = next.Frequency
		}
	}
	if s.n > 0 {
		if used, ok := others(s.last, next); ok {
			s.peak = max(s.peak, used)
		}
	} else {
		s.first = next
	}
	s.last = next
	s.n++
}

// others returns how many processors were busy with something else than the recorded programs between two samples. Ticks of
// 10 ms make it imprecise, so intervals below one second have none.
func others(a, b Sample) (used float64, ok bool) {
	elapsed := b.At.Sub(a.At).Seconds()
	if elapsed < 1 || a.Busy < 0 || b.Busy < a.Busy || b.Own < a.Own {
		return 0, false
	}
	return max(0, (b.Busy-a.Busy)-(b.Own-a.Own)) / elapsed, true
}

// Warning is a reason why the results of a recording may differ from those of another.
type Warning struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Text  string  `json:"text"` // a sentence without a full stop, with the figure
}

// Limits below which a machine counts as steady. They are proposed: a run on a quiet machine stays below them.
const (
	// othersLimit is in processors; othersShare is of all of them. The larger counts.
	othersLimit = 0.1
	othersShare = 0.05
	// peakLimit is for the busiest interval, in processors.
	peakLimit = 0.5
	// stealLimit is a share of the time of all processors.
	stealLimit = 0.01
	// frequencyLimit is the share of the highest frequency by which it may drop.
	frequencyLimit = 0.1
	// epcLimit is the share of the enclave page cache by which the use of others may change.
	epcLimit = 0.05
)

// Warnings returns what was unsteady. Without two samples that are a second apart there are none, because nothing is known.
func (s *Steadiness) Warnings() []Warning {
	var all []Warning
	if s.n < 2 {
		return nil
	}
	a, b := s.first, s.last
	limit := max(othersLimit, othersShare*float64(b.CPUs))
	if used, ok := others(a, b); ok && (used > limit || s.peak > max(peakLimit, limit)) {
		peak := max(used, s.peak)
		all = append(all, Warning{
			"others_cpus", used, "cpus",
			fmt.Sprintf("other programs used %.1f of %d CPUs while this was recorded, and %.1f in the busiest interval", used, b.CPUs, peak),
		})
	}
	if total := b.Total - a.Total; a.Total >= 0 && total >= 1 && a.Steal >= 0 && b.Steal > a.Steal {
		if share := (b.Steal - a.Steal) / total; share > stealLimit {
			all = append(all, Warning{
				"steal_ratio", share, "ratio",
				fmt.Sprintf("the hypervisor gave %.1f %% of the CPU time to others while this was recorded", 100*share),
			})
		}
	}
	if drop := 1 - s.slowest/s.fastest; s.fastest > 0 && drop > frequencyLimit {
		all = append(all, Warning{
			"frequency_drop_ratio", drop, "ratio",
			fmt.Sprintf("the highest CPU frequency was between %.2f and %.2f GHz while this was recorded", s.slowest/1e9, s.fastest/1e9),
		})
	}
	if n := b.Throttled - a.Throttled; a.Throttled >= 0 && n > 0 {
		all = append(all, Warning{"throttled", float64(n), "events", fmt.Sprintf("CPUs were slowed %s because of their temperature", text.Plural(int(n), "time", "times"))})
	}
	if n := b.Swapped - a.Swapped; a.Swapped >= 0 && n > 0 {
		all = append(all, Warning{"swapped_pages", float64(n), "pages", fmt.Sprintf("%s swapped while this was recorded", text.Plural(int(n), "page of memory was", "pages of memory were"))})
	}
	if e := s.epc; e.n > 0 && e.most-e.least > epcLimit*e.size {
		all = append(all, Warning{
			"epc_others_change_ratio", (e.most - e.least) / e.size, "ratio",
			fmt.Sprintf("others used between %.1f and %.1f MiB of the %.1f MiB of the enclave page cache while this was recorded", e.least/(1<<20), e.most/(1<<20), e.size/(1<<20)),
		})
	}
	if a.CPUs != b.CPUs && a.CPUs > 0 && b.CPUs > 0 {
		all = append(all, Warning{
			"cpus_online", float64(b.CPUs), "cpus", fmt.Sprintf("%d CPUs were online at the end, and %d at the beginning", b.CPUs, a.CPUs),
		})
	}
	return all
}
