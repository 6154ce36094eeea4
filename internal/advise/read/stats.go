// SPDX-License-Identifier: Apache-2.0

package read

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/lazy"
)

// maxBlocks bounds the blocks of SGX stats.
const maxBlocks = 1 << 16

// Counts are the counters of a block of SGX stats. They are totals.
type Counts struct {
	EENTERs, EEXITs, AEXs, SyncSignals, AsyncSignals uint64
}

func (c *Counts) add(o Counts) {
	c.EENTERs += o.EENTERs
	c.EEXITs += o.EEXITs
	c.AEXs += o.AEXs
	c.SyncSignals += o.SyncSignals
	c.AsyncSignals += o.AsyncSignals
}

// Stats are the SGX stats that Gramine prints with sgx.enable_stats (print_sgx_stats in host_thread.c, 1.0 to 1.9).
type Stats struct {
	Total     Counts        // of all processes
	Processes int           // whose totals were printed
	Threads   int           // whose own counters were printed, which Gramine 1.0 to 1.7 does
	Line      int           // of the first block of a process
	Loads     int           // enclaves whose loading time was printed
	Longest   time.Duration // that loading one of them took
	LoadLine  int           // of it
	Notes     []string      // blocks that are cut off
	PerfStat                // around it
}

var (
	statsBlock = lazy.Regexp(`----- (Total SGX stats for process|SGX stats for thread) (\d{1,10}) -----`)
	statsLine  = lazy.Regexp(`^\s*# of (EENTERs|EEXITs|AEXs|sync signals|async signals):\s+(\d{1,20})\s*$`)
	loading    = lazy.Regexp(`----- SGX enclave loading time =\s*(\d{1,15}) microseconds -----`)
)

// block is a block of stats that is being read.
type block struct {
	line    int
	process bool
	pid     string
	seen    map[string]uint64
}

func (b *block) counts() Counts {
	return Counts{b.seen["EENTERs"], b.seen["EEXITs"], b.seen["AEXs"], b.seen["sync signals"], b.seen["async signals"]}
}

// ParseStats reads SGX stats, and what perf stat printed around the program. Other lines may be between them, because the
// application prints to the same terminal. Gramine 1.8 and later resets the counters when it prints them on SIGUSR1, so blocks of
// one process add up.
func ParseStats(data []byte) (Stats, error) {
	var s Stats
	var open *block
	pids := make(map[string]bool)
	blocks := 0
	finish := func() {
		if open != nil && len(open.seen) < 5 {
			s.Notes = append(s.Notes, fmt.Sprintf("line %d: the block of SGX stats is cut off and does not count", open.line))
		}
		open = nil
	}
	for n, line := range lines(string(data)) {
		if found := statsBlock().FindStringSubmatch(line); found != nil {
			finish()
			if blocks++; blocks > maxBlocks || len(s.Notes) > 10 {
				return Stats{}, fmt.Errorf("line %d: there are more than %d blocks of SGX stats, or many that are cut off", n, maxBlocks)
			}
			open = &block{line: n, process: strings.HasPrefix(found[1], "Total"), pid: found[2], seen: make(map[string]uint64)}
			continue
		}
		if found := statsLine().FindStringSubmatch(line); found != nil && open != nil {
			value, err := strconv.ParseUint(found[2], 10, 47) // so that maxBlocks of them add up within 64 bits
			if err != nil {
				return Stats{}, fmt.Errorf("line %d: %s is not a number of events", n, found[2])
			}
			if open.seen[found[1]] = value; len(open.seen) < 5 {
				continue
			}
			if open.process {
				if s.Line == 0 {
					s.Line = open.line
				}
				pids[open.pid] = true
				s.Total.add(open.counts())
			} else {
				s.Threads++
			}
			open = nil
			continue
		}
		s.loading(n, line)
		s.line(n, line)
	}
	finish()
	if s.Processes = len(pids); s.Processes == 0 && s.Loads == 0 && s.Elapsed == 0 && len(s.Counters) == 0 {
		return Stats{}, fmt.Errorf("%w: a debug build of Gramine prints SGX stats with sgx.enable_stats = true, and perf stat its table", errNothing)
	}
	return s, nil
}

// loading reads a line with the time that loading an enclave took.
func (s *Stats) loading(n int, line string) {
	if found := loading().FindStringSubmatch(line); found != nil {
		us, _ := strconv.ParseInt(found[1], 10, 53)
		d := time.Duration(us) * time.Microsecond
		if s.Loads++; s.Loads == 1 || d > s.Longest {
			s.Longest, s.LoadLine = d, n
		}
	}
}
