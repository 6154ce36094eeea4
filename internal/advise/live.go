// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"github.com/teescope/teescope/internal/advise/machine"
	"github.com/teescope/teescope/internal/advise/manifest"
)

// Live has the data of the processes of one running program, without its manifest. What could not be read is zero.
type Live struct {
	Runtime   string    `json:"runtime"`   // as the label runtime of teescope_workload_info names it
	App       string    `json:"app"`       // as the command line names it
	Workload  string    `json:"workload"`  // the name that an agent gives it
	Processes []Process `json:"processes"` // the first process of the program, and those that it started
	CPUs      int       `json:"cpus"`      // that its threads may run on
	Cores     int       `json:"cores"`     // that have these CPUs; as many as CPUs without SMT
	Spare     int       `json:"spare"`     // cores of the machine that are not among them
	Nodes     int       `json:"nodes"`     // NUMA nodes that have these CPUs
	Pinned    bool      `json:"pinned"`    // its threads may run on different sets of CPUs
}

// Process has the data of one process.
type Process struct {
	PID     int    `json:"pid"`
	Threads int    `json:"threads"`
	Files   int    `json:"files"`         // open files, sockets and pipes on the host
	Enclave uint64 `json:"enclave_bytes"` // from the first to the last page of the enclave; 0 without one
	// Pipes are the sockets of the host in which Gramine accepts pipes, Unix sockets and messages between its processes. nil is
	// not known.
	Pipes *int `json:"pipe_sockets,omitempty"`
	// Encrypted are the open files on encrypted mounts of the manifest. nil is not known.
	Encrypted *int `json:"encrypted_files,omitempty"`
}

// Largest returns the process with the largest figure, or nil without processes.
func (l *Live) Largest(figure func(Process) int) *Process {
	var best *Process
	for i := range l.Processes {
		if best == nil || figure(l.Processes[i]) > figure(*best) {
			best = &l.Processes[i]
		}
	}
	return best
}

// Program is a program that runs in Gramine, with its manifest.
type Program struct {
	Live     Live
	Manifest string // its path, as the process sees it
	Text     []byte // of the manifest
	Error    string // why it is not known
	Machine  machine.Machine
	Gramine  *manifest.Versions // nil is not known
}
