// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"fmt"
	"strings"

	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/advise/read"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
	profiles "github.com/teescope/teescope/internal/run/profile/read"
	"github.com/teescope/teescope/internal/run/profile/read/names"
)

// ocallPrefix begins the names of the functions of Gramine's loader that make OCALLs (host_ocalls.c).
const ocallPrefix = "sgx_ocall_"

// loadProfile reads a profile: VTune's hotspots if the name ends in .csv, and otherwise what teescope profile reads.
func loadProfile(name string, m *manifest.Manifest) (*read.Functions, []string, error) {
	if strings.HasSuffix(name, ".csv") {
		f, err := load(name, "hotspots", maxTable, read.ParseHotspots)
		return &f, nil, err
	}
	p, err := profiles.Open(name, profiles.Options{Names: names.Host()})
	if err != nil {
		return nil, nil, fmt.Errorf("reading the profile: %w", err)
	}
	f, unresolved := functionsOf(p)
	if p.Format == profiles.Gramine {
		f.PerCall, f.Named = countsCalls(f, m)
	} else if counts, other := ofCPU(p); !counts {
		return nil, nil, fmt.Errorf("reading the profile: %s: its samples count %s, but the rules need CPU time: record a profile of CPU time", name, text.Terminal(text.Short(other, 100)))
	}
	var notes []string
	if unresolved > f.Total/2 {
		notes = append(notes, fmt.Sprintf("%s: %.0f %% of the samples have no function: read it where the program's files are", name, 100*unresolved/f.Total))
	}
	return f, notes, nil
}

// functionsOf returns what each function of a profile takes itself, and the samples without a function.
func functionsOf(p *profile.Profile) (f *read.Functions, unresolved float64) {
	f = &read.Functions{}
	rows := make(map[string]int)
	for i := range p.Samples {
		value := float64(p.Samples[i].Values[p.Main])
		f.Total += value
		frame := p.Frames[p.Samples[i].Stack[0]]
		if !frame.Resolved() {
			unresolved += value
			continue
		}
		at, known := rows[frame.Function]
		if !known {
			at = len(f.Rows)
			rows[frame.Function] = at
			f.Rows = append(f.Rows, read.Function{Name: frame.Function})
		}
		f.Rows[at].Value += value
	}
	return f, unresolved
}

// ofCPU reports whether the samples of a profile are CPU time or events that come with it, such as cycles. Otherwise it
// returns what they are of, such as memory or waiting for locks.
func ofCPU(p *profile.Profile) (counts bool, other string) {
	for _, v := range append([]profile.ValueType{p.Values[p.Main]}, p.Values...) {
		if v.IsSamples() {
			continue
		}
		for _, of := range []string{"cpu", "cycles", "clock"} {
			if strings.Contains(v.Type, of) {
				return true, ""
			}
		}
		return false, v.Type
	}
	return true, "" // samples alone
}

// countsCalls reports whether the samples of Gramine's profiler are OCALLs, and whether they name them. The file does not say
// its mode. In the mode ocall_outer each sample is in the function of an OCALL, and the manifest names the mode.
func countsCalls(f *read.Functions, m *manifest.Manifest) (perCall, named bool) {
	calls, _ := f.Share(func(name string) bool { return strings.HasPrefix(name, ocallPrefix) })
	named = calls > 0.5
	if m != nil {
		if mode, known := m.Get("sgx.profile.mode").Str(); known {
			return strings.HasPrefix(mode, "ocall_"), named
		}
	}
	return named, named
}
