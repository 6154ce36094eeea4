// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzFiles gives every parser of every file the same bytes. No parser may panic, exceed its bounds or return a name
// twice, which would be two samples of one series. Reading twice gives the same result.
func FuzzFiles(f *testing.F) {
	for _, text := range []string{
		"max 100000\n", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n", "8:0 rbytes=1 wbytes=2\n8:0 Read 4\n",
		"sgx_epc 4096\nsgx_epc 1\nsgx_epc.max 3\n", "oom_kill 1\nuser 2\nusage_usec 3\n", "-1\n", "9223372036854771712\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, tables := range [][]table{v1Files, v2Files} {
			for _, table := range tables {
				for _, file := range table.files {
					var s, again Stats
					file.parse(data, &s)
					file.parse(data, &again)
					if !reflect.DeepEqual(s, again) {
						t.Errorf("%v is read as %+v and then as %+v", file.names, s, again)
					}
					checkStats(t, &s)
				}
			}
		}
		for _, pid := range appendProcs(nil, data) {
			if pid <= 0 {
				t.Errorf("process %d", pid)
			}
		}
		if n, ok := parseNumber(data); ok && !strings.Contains(string(data), strconv.FormatUint(n, 10)) {
			t.Errorf("%q is read as %d", data, n)
		}
	})
}

func checkStats(t *testing.T, s *Stats) {
	t.Helper()
	if len(s.Devices) > maxDevices {
		t.Errorf("%d devices", len(s.Devices))
	}
	for _, list := range [][]Resource{s.MiscUsage, s.MiscLimit, s.MiscHits} {
		seen := map[string]bool{}
		for _, r := range list {
			if seen[r.Name] || len(list) > maxResources {
				t.Errorf("%q twice, or too many: %d", r.Name, len(list))
			}
			if r.Name == "" || !utf8.ValidString(r.Name) || strings.ContainsFunc(r.Name, unicode.IsControl) {
				t.Errorf("%q is not a label value", r.Name)
			}
			seen[r.Name] = true
		}
	}
	if v, ok := s.WorkingSet(); ok && v > s.values[MemoryUsage] {
		t.Errorf("a working set of %d out of %d", v, s.values[MemoryUsage])
	}
	// A time that is too large for nanoseconds is unknown. Modulo 2^64 it would be wrong.
	for _, n := range []Stat{CPUSome, CPUFull, MemorySome, MemoryFull, IOSome, IOFull} {
		if v, _ := s.Get(n); v%perMicrosecond != 0 {
			t.Errorf("number %d is %d, which are not whole microseconds", n, v)
		}
	}
	for n, known := range s.known {
		if !known && s.values[n] != 0 {
			t.Errorf("number %d is unknown and %d", n, s.values[n])
		}
	}
}
