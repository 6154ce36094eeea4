// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"bytes"
	"math"
	"os"
	"testing"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/boundarytest"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// hostile reads an untrusted program. It must return soon, with or without an error.
func hostile(_ *testing.T, data []byte) {
	p, err := executable.Read(bytes.NewReader(data))
	if err != nil {
		return
	}
	for _, r := range []*runtime{sdk, openEnclave, occlum, gramine} {
		spots, _, _ := r.find(p)
		for address := range spots {
			_, _ = p.ProbePoint(address)
		}
	}
	for _, address := range []uint64{0, 0x1000, 0x4000, math.MaxUint64 - 8} {
		_, _ = ocallTable(p, address)
		_, _ = ecallNames(p, address)
		_, _ = p.ProbePoint(address)
	}
}

func TestHostileFiles(t *testing.T) { boundarytest.Damaged(t, hostile) }

func FuzzProgram(f *testing.F) {
	f.Add(boundarytest.Small())
	f.Fuzz(hostile)
}

// Stepping has a cost, and the measured cost is what a program pays.
func TestSteppingIsMeasured(t *testing.T) {
	privilegetest.Alone(t)
	object, err := os.ReadFile("../boundary.bpf.o")
	if err != nil {
		t.Fatal(err)
	}
	o, err := bpf.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if err := o.CreateMaps(); err != nil {
		t.Fatal(err)
	}
	call, err := bpf.LoadUserProbe(o, "call")
	if err != nil {
		t.Fatal(err)
	}
	states, err := bpf.View[window.FileState](o, "files")
	if err != nil {
		t.Fatal(err)
	}
	cost, err := measureStepping(call)
	if err != nil || cost < 1 {
		t.Errorf("stepping costs %d: %v", cost, err)
	}
	if states[0].Cost != 0 {
		t.Error("measuring is counted as the cost of a file")
	}
	t.Logf("stepping costs %d cheap hits", cost)
}

func TestOnlyProbedFilesMeasure(t *testing.T) {
	probed, refused := &window.File{Sites: []bpf.Site{{}}}, &window.File{Reason: "operation not permitted"}
	f := &Functions{files: map[*window.File]*file{}}
	f.of(probed)
	f.of(refused)
	for of, want := range map[*window.File]bool{probed: true, refused: false, {Sites: []bpf.Site{{}}}: false} {
		if got := f.Measures(&process.Process{Files: map[*window.File]bool{of: true}}); got != want {
			t.Errorf("measured: %v, want %v, with %+v", got, want, of)
		}
	}
}

func TestVariantsOfFunctions(t *testing.T) {
	for symbol, want := range map[string]string{
		"sgx_ocall_read": "sgx_ocall_read", "sgx_ocall_read.isra.0": "sgx_ocall_read",
		"sgx_ocall_read.constprop.0.isra.3": "sgx_ocall_read",
		"sgx_ocall_read.cold":               "", "sgx_ocall_read.part.0": "", "sgx_ocall_read.isra.0.part.1": "", "sgx_ocall_read.cold.12": "",
	} {
		if got, variant := plainName(symbol); got != want || variant != (symbol != want) {
			t.Errorf("%s is %q, variant %v", symbol, got, variant)
		}
	}
}

func TestFilesOfRuntimes(t *testing.T) {
	const urts, pal, exe = "/usr/lib/libsgx_urts.so.2 (deleted)", "/opt/occlum/lib/libocclum-pal.so.0", "/usr/bin/app"
	for _, tt := range []struct {
		detected teelabel.Runtime
		file     string
		isExe    bool
		want     string
	}{
		{teelabel.SDK, urts, false, sdkName}, {teelabel.SDK, exe, true, openEnclaveName}, {teelabel.SDK, exe, false, ""},
		{teelabel.SDK, "/lib/libsgx_urts_sim.so", false, ""}, {teelabel.SDK, "/libsgx_urts.so/app", false, ""},
		{teelabel.Occlum, pal, false, occlumName}, {teelabel.Occlum, urts, false, ""}, {teelabel.Occlum, exe, true, ""},
		{teelabel.OpenEnclave, exe, true, openEnclaveName}, {teelabel.EGo, exe, true, openEnclaveName}, {teelabel.OpenEnclave, urts, false, ""},
		{teelabel.GramineSGX, "/usr/lib/gramine/sgx/loader", true, gramineName}, {teelabel.GramineSGX, urts, false, ""},
		{teelabel.SCONE, exe, true, ""}, {"", exe, true, ""}, {"", urts, false, ""}, {"", "", false, ""},
	} {
		if got := InFile(tt.detected, tt.file, tt.isExe); got != tt.want {
			t.Errorf("%s of %s: %q, want %q", tt.file, tt.detected, got, tt.want)
		}
	}
}
