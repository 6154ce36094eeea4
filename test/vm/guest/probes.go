// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// probesFile has probes of the user on what the program "known" does.
const probesFile = "/probes.yaml"

// attestation are the probes of deploy/probes/attestation.yaml on the function that the stand-in has.
const attestation = `
  - name: attestation_snp_report
    help: Time of reports.
    kretprobe: sev_report_new
    value: {histogram: duration}
  - name: attestation_snp_report_results
    help: Results of reports.
    kretprobe: sev_report_new
    keys: {error: errno}
`

// ownProbes mounts tracefs and writes the file, with those on the stand-in for a confidential machine if it is loaded.
func ownProbes(standIn bool) error {
	if err := unix.Mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, ""); err != nil && err != unix.EBUSY {
		return &os.PathError{Op: "mount", Path: "/sys/kernel/tracing", Err: err}
	}
	text := `probes:
  - name: calls
    help: Calls of a function of the kernel.
    kprobe: __x64_sys_getppid
  - name: results
    help: Its results by whether they are errors.
    kretprobe: __x64_sys_getppid
    keys: {error: errno}
  - name: call_time
    help: Time of its calls.
    kretprobe: __x64_sys_getppid
    value: {histogram: duration}
  - name: execs
    help: Programs that were executed.
    tracepoint: sched/sched_process_exec
  - name: runs
    help: Calls of a function of a program.
    uprobe: {file: /known, symbol: main.calls}
`
	if standIn {
		text += attestation
	}
	return os.WriteFile(probesFile, []byte(text), 0o600)
}
