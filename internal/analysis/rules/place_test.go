// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
)

func running(in ...place) engine.Workload {
	var samples []query.Sample
	for _, p := range in {
		samples = append(samples, query.Sample{Labels: map[string]string{"tee": string(p.tee), "runtime": p.runtime}, Value: 1})
	}
	return engine.NewWorkload("w", time.Minute, map[string][]query.Sample{teeSignal.Name: samples})
}

func TestPlaceOf(t *testing.T) {
	for _, c := range []struct {
		what                      string
		in                        []place
		want                      place
		known, enclave, protected bool
	}{
		{"not measured", nil, place{}, false, false, false},
		{"none", []place{{teeNone, ""}}, place{teeNone, ""}, true, false, false},
		{"no TEE named", []place{{"", "gramine-direct"}}, place{teeNone, "gramine-direct"}, true, false, false},
		{"sgx", []place{{teeSGX, "scone"}}, place{teeSGX, "scone"}, true, true, true},
		{"tdx", []place{{teeTDX, ""}}, place{teeTDX, ""}, true, false, true},
		{"sev", []place{{teeSEV, ""}}, place{teeSEV, ""}, true, false, true},
		{"a TEE to come", []place{{"cca", ""}}, place{"cca", ""}, true, false, true},
		{"an enclave beside its starter", []place{{teeNone, "gramine-direct"}, {teeSGX, "gramine-sgx"}}, place{teeSGX, "gramine-sgx"}, true, true, true},
		{"an enclave in a virtual machine", []place{{teeTDX, "x"}, {teeSGX, ""}}, place{teeSGX, ""}, true, true, true},
		{"the runtime of one process is known", []place{{teeSGX, ""}, {teeSGX, "occlum"}, {teeNone, "y"}}, place{teeSGX, "occlum"}, true, true, true},
	} {
		p := placeOf(running(c.in...))
		if p != c.want || p.known() != c.known || p.enclave() != c.enclave || p.protected() != c.protected {
			t.Errorf("%s: %+v, known %t, enclave %t, protected %t", c.what, p, p.known(), p.enclave(), p.protected())
		}
	}
}
