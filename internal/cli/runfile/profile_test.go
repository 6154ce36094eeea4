// SPDX-License-Identifier: Apache-2.0

package runfile

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/profiletest"
	"github.com/teescope/teescope/internal/run/profile/read"
	"github.com/teescope/teescope/internal/run/runtest"
)

// The profiles of all repetitions are added up: 3 and 4 s of work.
func TestProfilesOfARun(t *testing.T) {
	pprof := func(seconds int64) []byte {
		b := profile.NewBuilder("pprof", []profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}, profile.DefaultLimits())
		f, err := b.Frame(profile.Frame{Function: "work"})
		if err == nil {
			err = b.Add([]uint32{f}, nil, seconds*1e9)
		}
		if err != nil {
			t.Fatal(err)
		}
		return profiletest.Pprof(t, b.Profile())
	}
	r, err := runtest.Run(runtest.Spec{Repetitions: make([]runtest.Repetition, 2)})
	if err != nil {
		t.Fatal(err)
	}
	save := func(name string) string {
		file := filepath.Join(t.TempDir(), name)
		if err := run.Save(file, r); err != nil {
			t.Fatal(err)
		}
		return file
	}
	if _, err := Profile(save("none.tsrun"), read.Options{}); err == nil || !strings.Contains(err.Error(), "--profile") {
		t.Errorf("without a profile: %v", err)
	}
	r.Profiles = []run.Profile{{Type: "pprof", Repetition: 1, Data: pprof(3)}, {Type: "pprof", Repetition: 2, Data: pprof(4)}, {Type: "pprof", Repetition: 3}}
	p, err := Profile(save("two.tsrun"), read.Options{})
	if err != nil || p.Total() != 7e9 {
		t.Fatalf("%v, %v", p, err)
	}
	r.Profiles[0].Data = []byte("none")
	if _, err := Profile(save("damaged.tsrun"), read.Options{}); err == nil || !strings.Contains(err.Error(), "repetition 1") {
		t.Errorf("a damaged profile: %v", err)
	}
}
