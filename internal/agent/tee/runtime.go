// SPDX-License-Identifier: Apache-2.0

package tee

import (
	"path"
	"strings"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// Clues are the properties of a process by which its runtime is recognised.
type Clues struct {
	Exe     string   // path of the executable without the mark of a deleted file, empty if it cannot be read
	Args    []string // the first arguments
	Enclave bool     // an enclave is mapped
	libs    uint     // bit i: a library of libraries[i] is mapped
}

// CluesOf reads the executable and the arguments of a process. What cannot be read is missing: the process has ended, or
// privileges are missing. It may wait for the process, as a read of its memory does.
func CluesOf(p hostfs.Process) Clues {
	exe, _ := p.Executable()
	args, _ := p.Args(maxArgs)
	return Clues{Exe: hostfs.Undeleted(exe), Args: args}
}

// libraries identify runtimes by the beginning of a library's file name. A version follows it.
var libraries = []struct {
	prefix  string
	runtime teelabel.Runtime
}{
	// Occlum links the SDK's urts statically into its PAL.
	{"libocclum-pal.so", teelabel.Occlum},
	// These are the loader and the C library of SCONE's dynamically linked programs.
	{"ld-scone-", teelabel.SCONE},
	{"libc.scone-", teelabel.SCONE},
	{"libsgx_urts.so", teelabel.SDK},
	{"libsgx_urts_sim.so", teelabel.SDK}, // the simulation: no enclave
	// Open Enclave's host library is linked statically and loads enclaves through this library. So does the SDK's
	// urts, which is listed before it.
	{"libsgx_enclave_common.so", teelabel.OpenEnclave},
}

// Mapped notes that a file is mapped.
func (c *Clues) Mapped(file string) {
	c.Enclave = c.Enclave || IsEnclaveDevice(file)
	name := path.Base(file)
	if !strings.HasPrefix(name, "l") {
		return
	}
	for i, l := range libraries {
		if strings.HasPrefix(name, l.prefix) {
			c.libs |= 1 << i
		}
	}
}

// Runtime returns the name of the runtime, empty if none is known. The executable is checked before the
// arguments, and both before libraries, because an enclave of one runtime may use an attestation library of
// another.
func (c *Clues) Runtime() teelabel.Runtime {
	if r := byExecutable(c.Exe); r != "" {
		return r
	}
	if r := byArguments(c.Args); r != "" {
		return r
	}
	for i, l := range libraries {
		if c.libs&(1<<i) != 0 {
			return l.runtime
		}
	}
	return ""
}

func byExecutable(exe string) teelabel.Runtime {
	switch {
	case strings.HasSuffix(exe, "/gramine/sgx/loader"):
		return teelabel.GramineSGX
	// gramine-direct re-executes /proc/self/exe. After that its executable is the PAL.
	case strings.HasSuffix(exe, "/gramine/direct/libpal.so"), strings.HasSuffix(exe, "/gramine/direct/loader"):
		return teelabel.GramineDirect
	case strings.HasSuffix(exe, "/graphene/sgx/loader"):
		return teelabel.GrapheneSGX
	}
	switch name := path.Base(exe); {
	case name == "ego-host":
		return teelabel.EGo
	case name == "erthost":
		return teelabel.OpenEnclave // Edgeless RT, a fork of it
	case strings.HasPrefix(name, "occlum-run"), name == "occlum_exec_server":
		return teelabel.Occlum
	case strings.HasPrefix(name, "ld-scone-"):
		return teelabel.SCONE
	case name == "ftxsgx-runner", name == "ftxsgx-runner-cargo":
		return teelabel.FortanixEDP
	case strings.HasPrefix(name, "sgx-lkl-run"): // sgx-lkl-run-oe in later versions
		return teelabel.SGXLKL
	case name == "pal-Linux-SGX", name == "pal-sgx":
		return teelabel.GrapheneSGX
	}
	return ""
}

// byArguments recognises runtimes whose executable cannot be read, and hosts that load the enclave of their first
// argument.
func byArguments(args []string) teelabel.Runtime {
	if len(args) < 2 {
		return ""
	}
	if len(args) >= 3 && (args[2] == "init" || args[2] == "child") {
		switch { // LOADER PAL init|child APPLICATION
		case strings.HasSuffix(args[1], "/sgx/libpal.so"):
			return teelabel.GramineSGX
		case strings.HasSuffix(args[1], "/direct/libpal.so"):
			return teelabel.GramineDirect
		case strings.HasSuffix(args[1], "/libpal-Linux-SGX.so"):
			return teelabel.GrapheneSGX
		}
	}
	if strings.HasPrefix(path.Base(args[0]), "ld-scone-") {
		return teelabel.SCONE
	}
	// The argument of EGo's host is ENCLAVE:PAYLOAD.
	if enclave, _, found := strings.Cut(args[1], ":"); found && path.Base(enclave) == "ego-enclave" {
		return teelabel.EGo
	}
	return ""
}
