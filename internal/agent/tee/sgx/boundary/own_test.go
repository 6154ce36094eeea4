// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"path/filepath"
	"strings"
	"testing"
)

const enclu = "teescope_transition_probes_info{file=enclu,reason=,runtime=enclu,state=exact}"

// of returns a series of transitions of a program that enters by its own ENCLU.
func of(kind, workload string) string {
	return "teescope_enclave_transitions_total{kind=" + kind + ",source=enclu_breakpoint,workload=" + workload + "}"
}

// A runtime that has an ENCLU of its own is counted as one that enters through the vDSO: in all threads and children. Only
// code counts that the program executes as this instruction.
func TestEntriesOfARuntimeWithItsOwnENCLUAreCounted(t *testing.T) {
	for name, flags := range map[string][]string{"own-named": nil, "own-stripped": {"-s"}, "own-fixed": {"-no-pie", "-fno-pie"}} {
		t.Run(name, func(t *testing.T) {
			b := startWith(t, watching(t, modeOn, 0, name))
			p := run(t, build(t, filepath.Join(t.TempDir(), name), append([]string{"-DOWN", "testdata/doorway.c", "-lpthread"}, flags...)...))
			p.answer(t)
			untilEntered(t, b, p, of("eenter", name))
			before := scrape(t, b)
			if name != "own-stripped" && before[enclu] != 1 {
				t.Fatalf("no breakpoint is set: %v", before)
			}
			if n, known := before[of("aex", name)]; known {
				t.Errorf("%v AEX before the first", n)
			}
			for where, times := range []float64{1, 4, 4, 2} {
				before := scrape(t, b)
				p.do(t, "50 7 %d", where)
				look(t, b) // a child that is found gets no second breakpoint
				grown(t, before, scrape(t, b), map[string]float64{
					of("eenter", name): 50 * times, of("eexit", name): 50 * times, of("aex", name): 7 * times,
				})
			}
			execute(t, b, p, of("eenter", name))
			before = scrape(t, b)
			p.do(t, "30 20 1")
			grown(t, before, scrape(t, b), map[string]float64{of("eenter", name): 30 * 4, of("aex", name): 20 * 4})
		})
	}
}

// Without an enclave the code of a program is not even searched.
func TestNoBreakpointIsSetWithoutAnEnclave(t *testing.T) {
	b := startWith(t, watching(t, modeOn, 0, "erthost"))
	p := run(t, build(t, filepath.Join(t.TempDir(), "erthost"), "testdata/doorway.c", "-lpthread"))
	p.answer(t)
	look(t, b)
	for name := range scrape(t, b) {
		if strings.Contains(name, "file=enclu") {
			t.Errorf("%s without an enclave", name)
		}
	}
}
