// SPDX-License-Identifier: Apache-2.0

package tee

import (
	"path"
	"strings"
)

// clues are what a runtime is recognised by.
type clues struct {
	exe  string   // path of the executable, empty where it cannot be read
	args []string // the first arguments
	libs uint     // bit i: a library of libraries[i] is mapped
}

// libraries are those that tell a runtime, by the beginning of the file's name; versions follow it.
var libraries = []struct{ prefix, runtime string }{
	// Occlum links the SDK's urts statically into its PAL.
	{"libocclum-pal.so", "occlum"},
	// The loader and the C library that SCONE's dynamically linked programs run with.
	{"ld-scone-", "scone"},
	{"libc.scone-", "scone"},
	{"libsgx_urts.so", "sgx-sdk"},
	{"libsgx_urts_sim.so", "sgx-sdk"}, // the simulation: no enclave
	// Open Enclave's host library is linked statically and loads enclaves through this one. The SDK's
	// urts does too, and goes before it.
	{"libsgx_enclave_common.so", "openenclave"},
}

// mapped notes a mapping.
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

// runtime names the runtime, empty when there is none that we know. Executables go before arguments
// and both before libraries: an enclave of one runtime may come with an attestation library of another.
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
	// gramine-direct re-executes /proc/self/exe: from then on its executable is the PAL.
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

// byArguments is for executables that cannot be read, and hosts that load the enclave that they are told.
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
	// EGo's host gets ENCLAVE:PAYLOAD.
	if enclave, _, found := strings.Cut(args[1], ":"); found && path.Base(enclave) == "ego-enclave" {
		return "ego"
	}
	return ""
}
