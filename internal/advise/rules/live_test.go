// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/teescope/teescope/internal/advise"
)

// runs is a program in Gramine with one process.
func runs(threads, files int, enclave uint64) *advise.Live {
	return &advise.Live{Runtime: runtimeSGX, Processes: []advise.Process{{PID: 7, Threads: threads, Files: files, Enclave: enclave}}, CPUs: 8, Cores: 4, Nodes: 1}
}

// on is a program whose threads may run on these CPUs.
func on(cpus, cores, spare, nodes int, pinned bool) *advise.Live {
	l := runs(3, 3, 0)
	l.CPUs, l.Cores, l.Spare, l.Nodes, l.Pinned = cpus, cores, spare, nodes, pinned
	return l
}

// direct is a program in gramine-direct with 8 threads.
func direct() *advise.Live {
	l := runs(8, 1, 0)
	l.Runtime = "gramine-direct"
	return l
}

// several is a program with so many processes.
func several(runtime string, n int) *advise.Live {
	l := &advise.Live{Runtime: runtime}
	for i := range n {
		l.Processes = append(l.Processes, advise.Process{PID: 7 + i, Threads: 3, Files: 3})
	}
	return l
}

// What a running program shows takes the place of what its manifest and machine allow.
func TestRunningInsteadOfAllowed(t *testing.T) {
	three := several(runtimeSGX, 3)
	const python = "libos.entrypoint = \"/usr/bin/python3\"\n"
	for name, tt := range map[string]struct {
		rule advise.Rule
		given
		want bool
	}{
		"threads of the manifest":  {mallocArenas(), given{manifest: "sgx.max_threads = 64"}, true},
		"threads that run":         {mallocArenas(), given{manifest: "sgx.max_threads = 64", live: runs(5, 1, 0)}, false},
		"many threads that run":    {mallocArenas(), given{manifest: "sgx.max_threads = 64", live: runs(6, 1, 0)}, true},
		"nodes of the machine":     {numa(), given{machine: "numa_nodes 0-1"}, true},
		"one node used":            {numa(), given{machine: "numa_nodes 0-1", live: on(8, 4, 0, 1, false)}, false},
		"two nodes used":           {numa(), given{live: on(8, 4, 0, 2, false)}, true},
		"nodes that are not known": {numa(), given{machine: "numa_nodes 0-1", live: on(8, 4, 0, 0, false)}, true},
		"three enclaves":           {enclavesOverEPC(), given{manifest: `sgx.enclave_size = "64M"`, machine: mib128, live: three}, true},
		"none in gramine-direct":   {enclavesOverEPC(), given{manifest: `sgx.enclave_size = "64M"`, machine: mib128, live: several(runtimeDirect, 3)}, false},
		"one enclave":              {enclavesOverEPC(), given{manifest: `sgx.enclave_size = "64M"`, machine: mib128, live: runs(1, 1, 1)}, false},
		"a helper":                 {helperProcesses(), given{manifest: python, live: three}, true},
		"no helper":                {helperProcesses(), given{manifest: python, live: runs(1, 1, 1)}, false},
	} {
		r := advise.Evaluate(tt.facts(t), []advise.Rule{tt.rule})
		if got := len(r.Advice) == 1; got != tt.want {
			t.Errorf("%s: advice is %v", name, got)
		}
	}
	full := advise.Evaluate(given{manifest: "sgx.max_threads = 8", live: runs(8, 1, 0)}.facts(t), []advise.Rule{threadSlots()})
	if len(full.Advice) != 1 || full.Advice[0].Severity != "medium" || full.Advice[0].Seen[0].Value != 8 {
		t.Errorf("%+v", full.Advice)
	}
}
