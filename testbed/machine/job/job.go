// SPDX-License-Identifier: Apache-2.0

// Package job is what the host and the first process of the guest tell each other. It refuses to act.
package job

// Places in the guest.
const (
	File = "/job.json" // the job
	Dir  = "/job"      // the command's working directory: where files are brought
)

// Names of the virtio ports. What travels on Status is one JSON Status a line, on Files a tar archive.
const (
	PortStdout = "stdout"
	PortStderr = "stderr"
	PortFiles  = "files"
	PortStatus = "status"
)

// Job says what the guest does.
type Job struct {
	Modules  []Module // loaded in this order; those before Ports speak to the host
	Ports    int      // how many of Modules are loaded before the ports are opened
	Hostname string
	Argv     []string
	Env      []string
	Relays   []Relay
	Out      []string // files and folders to bring back; relative to Dir
}

// Module is a kernel module in the guest's file system.
type Module struct{ File, Params string }

// Relay makes a port of the guest's loopback reachable at a port of its network interface.
type Relay struct{ Listen, To int }

// Status is what the guest reports: Up when it is ready to work, then once how the command ended.
type Status struct {
	Up      bool     `json:",omitempty"`
	Ended   bool     `json:",omitempty"`
	Exit    int      // of the command; 128 and the signal's number when a signal ended it, as a shell says
	Error   string   `json:",omitempty"` // why the guest could not do its job
	Trouble []string `json:",omitempty"` // warnings and oopses of the kernel's log
}
