// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

func running(in ...environment) engine.Workload {
	var samples []query.Sample
	for _, p := range in {
		samples = append(samples, query.Sample{Labels: map[string]string{"tee": string(p.kind), "runtime": string(p.runtime)}, Value: 1})
	}
	return engine.NewWorkload("w", time.Minute, map[string][]query.Sample{teeSignal.Name: samples})
}

func TestEnvironmentOf(t *testing.T) {
	for _, c := range []struct {
		what                      string
		in                        []environment
		want                      environment
		known, enclave, protected bool
	}{
		{"not measured", nil, environment{}, false, false, false},
		{"none", []environment{{teelabel.None, ""}}, environment{teelabel.None, ""}, true, false, false},
		{"no TEE named", []environment{{"", "gramine-direct"}}, environment{teelabel.None, "gramine-direct"}, true, false, false},
		{"sgx", []environment{{teelabel.SGX, "scone"}}, environment{teelabel.SGX, "scone"}, true, true, true},
		{"tdx", []environment{{teelabel.TDX, ""}}, environment{teelabel.TDX, ""}, true, false, true},
		{"sev", []environment{{teelabel.SEV, ""}}, environment{teelabel.SEV, ""}, true, false, true},
		{"a TEE to come", []environment{{"cca", ""}}, environment{"cca", ""}, true, false, true},
		{"an enclave beside its starter", []environment{{teelabel.None, "gramine-direct"}, {teelabel.SGX, "gramine-sgx"}}, environment{teelabel.SGX, "gramine-sgx"}, true, true, true},
		{"an enclave in a virtual machine", []environment{{teelabel.TDX, "x"}, {teelabel.SGX, ""}}, environment{teelabel.SGX, ""}, true, true, true},
		{"the runtime of one process is known", []environment{{teelabel.SGX, ""}, {teelabel.SGX, "occlum"}, {teelabel.None, "y"}}, environment{teelabel.SGX, "occlum"}, true, true, true},
	} {
		p := environmentOf(running(c.in...))
		if p != c.want || p.known() != c.known || p.enclave() != c.enclave || p.protected() != c.protected {
			t.Errorf("%s: %+v, known %t, enclave %t, protected %t", c.what, p, p.known(), p.enclave(), p.protected())
		}
	}
}
