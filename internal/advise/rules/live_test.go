// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/advise"
	judged "github.com/teescope/teescope/internal/analysis/rules"
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

// casesOfRunning are those of rules about running programs and about SCONE.
func casesOfRunning() map[string]c {
	direct := runs(8, 1, 0)
	direct.Runtime = "gramine-direct"
	const exitless = "sgx.max_threads = 10\nsgx.insecure__rpc_thread_num = 4\n"
	return map[string]c{
		"exitless-pinning": {
			fires: []given{{manifest: exitless, live: on(8, 4, 0, 1, false)}},
			silent: []given{
				{manifest: exitless, live: on(8, 4, 0, 1, true)}, {manifest: exitless, live: on(1, 1, 3, 1, false)},
				{manifest: "a=1", live: on(8, 4, 0, 1, false)}, {manifest: exitless, live: direct},
			},
		},
		"open-files": {
			fires: []given{{manifest: "a=1", live: runs(3, 720, 0)}, {manifest: "sys.fds.limit = 1000", live: runs(3, 800, 0)}},
			silent: []given{
				{manifest: "a=1", live: runs(3, 719, 0)}, {manifest: "sys.fds.limit = 1000", live: runs(3, 799, 0)},
				{manifest: "sys.fds.limit = {{ n }}", template: true, live: runs(3, 9000, 0)},
			},
		},
		"scone-queues": {
			fires:  []given{{config: "SCONE_QUEUES=9\n", machine: "cpus_online 0-7"}, {config: "Q 9\n", machine: "cpus_online 0-7"}, {config: "Q 1\n" + strings.Repeat("s -1 0 0\n", 9), machine: "cpus_online 0-7"}},
			silent: []given{{config: "SCONE_QUEUES=8\n", machine: "cpus_online 0-7"}, {config: "NumTCS=9\n", machine: "cpus_online 0-7"}},
		},
		"scone-simulation": {
			fires:  []given{{config: "SCONE_MODE=sim\n"}},
			silent: []given{{config: "SCONE_MODE=hw\n"}, {config: "NumTCS=9\n"}},
		},
		"scone-slots": {
			fires:  []given{{config: "SCONE_SLOTS=64\n", scaling: "1 2 - 1\n64 9 - 5\n"}},
			silent: []given{{config: "SCONE_SLOTS=65\n", scaling: "1 2 - 1\n64 9 - 5\n"}, {config: "SCONE_QUEUES=4\n", scaling: "64 9 - 5\n"}, {config: "NumTCS=9\n", scaling: "64 9 - 5\n"}},
		},
		"scone-spins": {
			fires:  []given{{config: "SCONE_SSPINS=10000\n"}, {config: "SCONE_ESPINS=1000000\n"}},
			silent: []given{{config: "SCONE_SSPINS=9999\nSCONE_ESPINS=999999\n"}, {config: "SCONE_QUEUES=4\n"}, {config: "NumTCS=9\n"}},
		},
		"shared-cores": {
			fires:  []given{{live: on(4, 2, 2, 1, false)}},
			silent: []given{{live: on(4, 2, 1, 1, false)}, {live: on(4, 4, 4, 1, false)}, {live: on(8, 4, 0, 1, false)}, {live: on(0, 0, 0, 0, false)}},
		},
		"stale-manifest": {
			fires: []given{{manifest: `sgx.enclave_size = "512M"`, live: runs(3, 3, 1<<30)}, {manifest: "a=1", live: runs(3, 3, 512<<20)}},
			silent: []given{
				{manifest: `sgx.enclave_size = "1G"`, live: runs(3, 3, 1<<30)}, {manifest: "a=1", live: runs(3, 3, 256<<20)}, {manifest: "a=1", live: runs(3, 3, 0)},
				{manifest: "sgx.edmm_enable = true", live: runs(3, 3, 1<<40)},
			},
		},
		"thread-slots": {
			fires: []given{
				{manifest: "sgx.max_threads = 8", found: judged.ThreadsOverCapacity}, {manifest: "sgx.thread_num = 8", found: judged.ThreadsOverCapacity}, {config: "NumTCS=8\n", found: judged.ThreadsOverCapacity},
				{manifest: "sgx.max_threads = 10", live: runs(8, 1, 0)}, {manifest: exitless, live: runs(12, 1, 0)}, {manifest: exitless, live: direct},
			},
			silent: []given{
				{manifest: "a=1", found: "none"}, {found: judged.ThreadChurn}, {manifest: "sgx.max_threads = 10", live: runs(7, 1, 0)}, {manifest: exitless, live: runs(11, 1, 0)},
				{manifest: exitless + "sgx.edmm_enable = true", live: runs(20, 1, 0)},
			},
		},
	}
}

// What a running program shows takes the place of what its manifest and machine allow.
func TestRunningInsteadOfAllowed(t *testing.T) {
	several := runs(3, 3, 0)
	several.Processes = append(several.Processes, advise.Process{PID: 8}, advise.Process{PID: 9})
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
		"three enclaves":           {enclavesOverEPC(), given{manifest: `sgx.enclave_size = "64M"`, machine: mib128, live: several}, true},
		"one enclave":              {enclavesOverEPC(), given{manifest: `sgx.enclave_size = "64M"`, machine: mib128, live: runs(1, 1, 1)}, false},
		"a helper":                 {helperProcesses(), given{manifest: python, live: several}, true},
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
