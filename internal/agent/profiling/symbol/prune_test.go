// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"os"
	"os/exec"
	"testing"
)

// A process that has ended is forgotten, with its files, and one that runs keeps its names.
func TestEndedProcessesAreForgotten(t *testing.T) {
	table := table(t, "")
	table.Remember = true
	cmd := exec.Command("/bin/cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pids := []int{cmd.Process.Pid, os.Getpid()}
	var gone *Process
	for _, pid := range pids {
		p := table.Of(sampleOf(t, pid))
		table.Code(p) // opens its files
		if pid == cmd.Process.Pid {
			gone = p
		}
	}
	if open := table.open; len(table.processes) != 2 || open == 0 {
		t.Fatalf("%d processes, %d files", len(table.processes), open)
	}
	before := table.open
	_, err1 := table.Prune()
	if err1 != nil || len(table.processes) != 2 || table.open != before {
		t.Errorf("running processes: %d, %d of %d files, %v", len(table.processes), table.open, before, err1)
	}
	_ = in.Close()
	_ = cmd.Wait() // it has ended in either case
	ended, err := table.Prune()
	if err != nil || len(ended) != 1 || ended[0] != gone.Process || len(table.processes) != 1 || table.open >= before {
		t.Errorf("%v have ended, %d processes and %d of %d files are left, %v", ended, len(table.processes), table.open, before, err)
	}
	mapped := 0
	for _, p := range table.processes {
		mapped += len(p.mappings)
	}
	if table.mapped != mapped {
		t.Errorf("%d mappings are counted, and there are %d", table.mapped, mapped)
	}
}
