// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/advise/read"
	"github.com/teescope/teescope/internal/run/profile"
)

func TestFunctionsOf(t *testing.T) {
	b := profile.NewBuilder("test", []profile.ValueType{{Type: "samples", Unit: "count"}}, profile.DefaultLimits())
	frame := func(name string) uint32 {
		i, err := b.Frame(profile.Frame{Function: name, Library: "app"})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	inner, outer, none := frame("AES_encrypt"), frame("main"), frame("")
	for _, s := range []struct {
		stack []uint32
		n     int64
	}{{[]uint32{inner, outer}, 5}, {[]uint32{outer}, 2}, {[]uint32{none, outer}, 2}, {[]uint32{inner}, 1}} {
		if err := b.Add(s.stack, nil, s.n); err != nil {
			t.Fatal(err)
		}
	}
	f, unresolved := functionsOf(b.Profile())
	share, top := f.Share(func(name string) bool { return name == "AES_encrypt" })
	if f.Total != 10 || unresolved != 2 || share != 0.6 || top.Value != 6 || len(f.Rows) != 2 {
		t.Errorf("%+v, %v", f, unresolved)
	}
}

func TestCountsCalls(t *testing.T) {
	outer := &read.Functions{Rows: []read.Function{{Name: "sgx_ocall_read", Value: 9}, {Name: "main", Value: 1}}, Total: 10}
	inner := &read.Functions{Rows: []read.Function{{Name: "sgx_ocall_read", Value: 5}, {Name: "main", Value: 5}}, Total: 10}
	for text, want := range map[string]bool{"": true, `sgx.profile.mode = "aex"`: false, `sgx.profile.mode = "ocall_outer"`: true} {
		var m *manifest.Manifest
		if text != "" {
			var err error
			if m, err = manifest.Parse([]byte(text), manifest.Options{Name: "app.manifest"}); err != nil {
				t.Fatal(err)
			}
		}
		if got, named := countsCalls(outer, m); got != want || !named {
			t.Errorf("%q: %v", text, got)
		}
		if got, named := countsCalls(inner, m); got != (want && text != "") || named {
			t.Errorf("half of the samples, %q: %v", text, got)
		}
	}
}

func TestLoadProfile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	f, _, err := loadProfile(write("hot.csv", "Function,CPU Time\nAES_encrypt,3s\nmain,1s\n"), nil)
	if err != nil || f.Total != 4 || f.PerCall {
		t.Errorf("%+v, %v", f, err)
	}
	// Folded stacks whose functions make OCALLs are of perf: their samples are time.
	f, _, err = loadProfile(write("stacks.folded", "main;sgx_ocall_read 9\nmain 1\n"), nil)
	if err != nil || f.Total != 10 || f.PerCall {
		t.Errorf("%+v, %v", f, err)
	}
	// Memory and waiting for locks are no CPU time.
	for kinds, want := range map[string]bool{
		"samples/count cpu/nanoseconds": true, "samples/count": true, "samples/count cycles:u/count": true, "samples/count task-clock/count": true,
		"alloc_objects/count alloc_space/bytes": false, "contentions/count delay/nanoseconds": false, "samples/count page-faults/count": false,
	} {
		var values []profile.ValueType
		for _, kind := range strings.Fields(kinds) {
			kind, unit, _ := strings.Cut(kind, "/")
			values = append(values, profile.ValueType{Type: kind, Unit: unit})
		}
		if got, other := ofCPU(profile.NewBuilder("test", values, profile.DefaultLimits()).Profile()); got != want || got == (other != "") {
			t.Errorf("%s: %v, %q", kinds, got, other)
		}
	}
	if _, _, err := loadProfile(write("none.csv", "hello\n"), nil); err == nil || !strings.Contains(err.Error(), "none.csv") {
		t.Error(err)
	}
}
