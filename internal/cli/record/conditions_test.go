// SPDX-License-Identifier: Apache-2.0

package record

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/watch"
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

// A set-up command may start a server again. The conditions are those of the process that runs.
func TestServersThatStartedAgain(t *testing.T) {
	rule, err := watch.Parse("pid=" + strconv.Itoa(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	c := newChooser("/proc", t.TempDir(), []watch.Rule{rule}, nil)
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSpace(string(comm))
	const ended = 1 << 30
	c.found[name] = ended
	if _, err := c.watched(); err != nil || c.servers()[name] != os.Getpid() {
		t.Errorf("servers are %v, want this process: %v", c.servers(), err)
	}
}
