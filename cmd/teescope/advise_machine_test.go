// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/cli"
	advised "github.com/teescope/teescope/internal/cli/advise"
)

// A finding about one machine does not apply to another.
func TestAdviseIsAboutOneMachine(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	const remote, local = "http://central:9750", "http://127.0.0.1:9750"
	for name, tt := range map[string]struct {
		found            string // instances of findings
		server, instance string
		live             bool
		kept, failure    string
	}{
		"one machine":              {found: "a:1 a:1", server: remote, kept: "a:1 a:1"},
		"a run":                    {found: "- -", kept: "- -"},
		"two machines":             {found: "b:1 a:1", server: remote, failure: "on 2 machines, and none is known to be the right one: name it with --instance, one of a:1, b:1"},
		"a named one":              {found: "b:1 a:1 -", server: remote, instance: "a:1", kept: "a:1 -"},
		"a named host":             {found: "b:1 a:1", server: remote, instance: "b", kept: "b:1"},
		"nothing about it":         {found: "b:1 a:1", server: remote, instance: "c", kept: ""},
		"this machine":             {found: "b:1 " + host + ":1 " + host, server: remote, live: true, kept: host + ":1 " + host},
		"only another machine":     {found: "b:1", server: remote, live: true, failure: "name it with --instance, one of b:1"},
		"another name of this one": {found: "127.0.0.1:9751", server: local, live: true, kept: "127.0.0.1:9751"},
		"nothing is found":         {found: "", server: remote, live: true, kept: ""},
	} {
		o := adviseFlags{instance: tt.instance, Files: advised.Files{Live: tt.live}, Analysis: cli.Analysis{Server: tt.server, Workload: "db"}}
		var all []analysis.Finding
		for _, instance := range strings.Fields(tt.found) {
			all = append(all, analysis.Finding{Instance: strings.TrimPrefix(instance, "-")})
		}
		kept, err := o.onMachine(all)
		var got []string
		for _, f := range kept {
			got = append(got, f.Instance)
			if f.Instance == "" {
				got[len(got)-1] = "-"
			}
		}
		failed := ""
		if err != nil {
			failed = err.Error()
		}
		if strings.Join(got, " ") != tt.kept || !strings.Contains(failed, tt.failure) || (failed == "") != (tt.failure == "") {
			t.Errorf("%s: %q, %q", name, got, failed)
		}
	}
	dir := manifestDir(t, advisedManifest)
	for args, want := range map[string]string{"--instance a": "--workload", "--instance a --run x.tsrun": "a run is of one machine"} {
		if _, _, err := adviseIn(t, dir, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// The facts about this machine are not those of another one whose series a server on this machine has.
func TestFactsOfAnotherMachine(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ instances, named, want string }{
		"another":           {"not-" + host + ":9750", "", "not-" + host + ":9750"},
		"this":              {host + ":9750", "", ""},
		"this with domain":  {host + ".example.org:9750", "", ""},
		"localhost":         {"localhost:9750", "", ""},
		"loopback":          {"127.0.0.1:9750", "", ""},
		"loopback of IPv6":  {"[::1]:9750", "", ""},
		"another address":   {"192.0.2.7:9750", "", "192.0.2.7:9750"}, // for documentation: no machine has it (RFC 5737)
		"both":              {"192.0.2.7:9750 " + host, "", ""},
		"the other of both": {"192.0.2.7:9750 " + host, "192.0.2.7", "192.0.2.7:9750"},
		"this of both":      {"192.0.2.7:9750 " + host, host, ""},
		"not known":         {"-", "", ""},
		"nothing":           {"", "", ""},
	} {
		o := adviseFlags{instance: tt.named}
		var all []engine.Limit
		for _, instance := range strings.Fields(tt.instances) {
			all = append(all, engine.Limit{Instance: strings.TrimPrefix(instance, "-")})
		}
		if got := o.elsewhere(all); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Naming a machine that does not have the workload is an error. The result is not "no findings".
func TestAdviseUnknownMachine(t *testing.T) {
	for instance, want := range map[string]string{"": "", "a": "a", "a:1": "a", "b": "b", "c": ""} {
		o := adviseFlags{instance: instance}
		if got := o.named([]engine.Limit{{Instance: "b:1"}, {Instance: "a:1"}, {Instance: "a:1"}, {Instance: "b:2"}}); got != want {
			t.Errorf("%q selects %q, want %q", instance, got, want)
		}
	}
	for instance, want := range map[string]string{"": "", "a": "", "a:1": "", "c": `http://x has no series of the workload "db" on "c": use one of a:1, b:1`} {
		o := adviseFlags{instance: instance, Analysis: cli.Analysis{Server: "http://x", Workload: "db"}}
		err := o.knowsMachine([]engine.Limit{{Instance: "b:1"}, {Instance: "a:1"}, {Instance: "b:1"}})
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q: %v, want %q", instance, err, want)
		}
	}
}
