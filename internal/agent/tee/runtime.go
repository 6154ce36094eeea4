// SPDX-License-Identifier: Apache-2.0

package tee

import (
	"path"
	"strings"
)

// clues are the properties of a process by which its runtime is recognised.
type clues struct {
	exe  string   // path of the executable, empty if it cannot be read
	args []string // the first arguments
	libs uint     // bit i: a library of libraries[i] is mapped
}

// libraries identify runtimes by the beginning of a library's file name. A version follows it.
var libraries = []struct{ prefix, runtime string }{
	// Occlum links the SDK's urts statically into its PAL.
	{"libocclum-pal.so", "occlum"},
	// These are the loader and the C library of SCONE's dynamically linked programs.
	{"ld-scone-", "scone"},
	{"libc.scone-", "scone"},
	{"libsgx_urts.so", "sgx-sdk"},
	{"libsgx_urts_sim.so", "sgx-sdk"}, // the simulation: no enclave
	// Open Enclave's host library is linked statically and loads enclaves through this library. So does the SDK's
	// urts, which is listed before it.
	{"libsgx_enclave_common.so", "openenclave"},
}

// mapped notes that a file is mapped.
func (c *clues) mapped(file string) {
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

// runtime returns the name of the runtime, empty if none is known. The executable is checked before the
// arguments, and both before libraries, because an enclave of one runtime may use an attestation library of
// another.
func (c *clues) runtime() string {
	if r := byExecutable(c.exe); r != "" {
		return r
	}
	if r := byArguments(c.args); r != "" {
		return r
	}
	for i, l := range libraries {
		if c.libs&(1<<i) != 0 {
			return l.runtime
		}
	}
	return ""
}

func byExecutable(exe string) string {
	switch {
	case strings.HasSuffix(exe, "/gramine/sgx/loader"):
		return "gramine-sgx"
	// gramine-direct re-executes /proc/self/exe. After that its executable is the PAL.
	case strings.HasSuffix(exe, "/gramine/direct/libpal.so"), strings.HasSuffix(exe, "/gramine/direct/loader"):
		return "gramine-direct"
	}
	switch name := path.Base(exe); {
	case name == "ego-host":
		return "ego"
	case name == "erthost":
		return "openenclave" // Edgeless RT, a fork of it
	case strings.HasPrefix(name, "occlum-run"), name == "occlum_exec_server":
		return "occlum"
	case strings.HasPrefix(name, "ld-scone-"):
		return "scone"
	case name == "ftxsgx-runner", name == "ftxsgx-runner-cargo":
		return "fortanix-edp"
	}
	return ""
}

// byArguments recognises runtimes whose executable cannot be read, and hosts that load the enclave of their first
// argument.
func byArguments(args []string) string {
	if len(args) < 2 {
		return ""
	}
	if len(args) >= 3 && (args[2] == "init" || args[2] == "child") {
		switch { // LOADER PAL init|child APPLICATION
		case strings.HasSuffix(args[1], "/sgx/libpal.so"):
			return "gramine-sgx"
		case strings.HasSuffix(args[1], "/direct/libpal.so"):
			return "gramine-direct"
		}
	}
	if strings.HasPrefix(path.Base(args[0]), "ld-scone-") {
		return "scone"
	}
	// The argument of EGo's host is ENCLAVE:PAYLOAD.
	if enclave, _, found := strings.Cut(args[1], ":"); found && path.Base(enclave) == "ego-enclave" {
		return "ego"
	}
	return ""
}
