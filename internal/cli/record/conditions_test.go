// SPDX-License-Identifier: Apache-2.0

package record

import (
	"os"
	"slices"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/run"
)

// The command inherits the CPUs that the recorder may use. A server has its own, and the conditions of the machine are there once.
func TestConditionsOfCommandAndServers(t *testing.T) {
	r := &recording{Options: &Options{Command: []string{"true"}}, chooser: newChooser("/proc", t.TempDir(), nil, nil)}
	r.chooser.found["me"] = os.Getpid()
	all := slices.Concat(r.describe(t.Context()), r.describeServers())
	cpus, nodes := hostfs.At("/proc").Process(os.Getpid()).Allowed()
	for _, want := range []run.Condition{
		{Name: "affinity", Value: cpus, Kind: "identity"}, {Name: "memory_nodes", Value: nodes, Kind: "identity"}, {Name: "me.affinity", Value: cpus, Kind: "identity"},
	} {
		if !slices.Contains(all, want) {
			t.Errorf("no condition %+v in %+v", want, all)
		}
	}
	has := func(name string) bool {
		return slices.ContainsFunc(all, func(c run.Condition) bool { return c.Name == name })
	}
	if !has("kernel") || !has("me.program_sha256") || has("me.kernel") || has("me.tee") {
		t.Errorf("conditions are %+v", all)
	}
}
