// SPDX-License-Identifier: Apache-2.0

// Package job defines the messages between the host and the first process of the guest. It contains only types.
package job

// Paths in the guest.
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

// Job is the work of the guest.
type Job struct {
	Modules  []Module // loaded in this order; those before Ports speak to the host
	Ports    int      // how many of Modules are loaded before the ports are opened
	Hostname string
	Argv     []string
	Env      []string
	Relays   []Relay
	Out      []string // files and folders to bring back; relative to Dir
	Init     []string // becomes the first process, and the guest its child; may be empty
}

// Module is a kernel module in the guest's file system.
type Module struct{ File, Params string }

// Relay makes a port of the guest's loopback reachable at a port of its network interface.
type Relay struct{ Listen, To int }

// Status is a message of the guest: Up when it is ready, then once the result of the command. The guest does not
// power off after the result. The host ends the machine when it has received all that Sent counts, because QEMU
// loses what it has not yet written when the guest powers off.
type Status struct {
	Up      bool     `json:",omitempty"`
	Ended   bool     `json:",omitempty"`
	Exit    int      // of the command; 128 plus the signal's number if a signal ended it, as in a shell
	Error   string   `json:",omitempty"` // why the guest could not run the job
	Trouble []string `json:",omitempty"` // warnings and oopses of the kernel's log
	// Sent is the number of bytes written to PortStdout, PortStderr and PortFiles.
	Sent map[string]int64 `json:",omitempty"`
}
