// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"encoding/binary"
	"math"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/teescope/teescope/internal/lib/text"
)

// Executables, repositories and environments belong to users. The files of /proc are here for numbers that overflow.

func FuzzBuildID(f *testing.F) {
	note := []byte("\x04\x00\x00\x00\x03\x00\x00\x00\x03\x00\x00\x00GNU\x00\xab\xcd\xef\x00")
	f.Add(note, uint64(4))
	f.Add(append([]byte("\x04\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00Xen\x00"), note...), uint64(8))
	f.Fuzz(func(t *testing.T, notes []byte, align uint64) {
		if id := parseBuildID(notes, binary.LittleEndian.Uint32, align); len(id) > 128 || len(id)%2 != 0 || len(id)/2 > len(notes) {
			t.Errorf("%x has the build ID %s", notes, id)
		}
	})
}

func FuzzELF(f *testing.F) {
	header := make([]byte, 120)
	copy(header, "\x7fELF\x02\x01\x01")
	header[16], header[18], header[20], header[32], header[54], header[56] = 2, 62, 1, 64, 56, 1
	f.Add(header)
	f.Fuzz(func(t *testing.T, data []byte) {
		path := t.TempDir() + "/x"
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		var all list
		executable(&all, path)
		checkConditions(t, all)
	})
}

func checkConditions(t *testing.T, all []Condition) {
	t.Helper()
	for _, c := range all {
		if !text.IsLabel(c.Name) || !text.IsLabel(c.Value) || c.Value == "" || len(c.Value) > maxValue || len(c.Name) > maxValue || !utf8.ValidString(c.Name) {
			t.Errorf("%+v is unsafe or too long", c)
		}
	}
}

func FuzzEnvironment(f *testing.F) {
	f.Add("GOGC=1\x00PASSWORD=hunter2\x00SCONE_KEY=hunter2")
	f.Add("LD_PRELOAD=\x00OE_\xff=hunter2")
	f.Fuzz(func(t *testing.T, environ string) {
		var all list
		environment(&all, strings.Split(environ, "\x00"))
		checkConditions(t, all)
		all = nil
		environment(&all, []string{strings.ReplaceAll(environ, "\x00", "") + "X=hunter2"})
		for _, c := range all {
			if strings.Contains(c.Value, "hunter2") && !isSetting(c.Name) {
				t.Errorf("%+v has a value of a variable that is not in the list", c)
			}
		}
	})
}

func isSetting(name string) bool {
	for _, s := range settings {
		if name == "env."+s {
			return true
		}
	}
	return false
}

func FuzzMachineFiles(f *testing.F) {
	f.Add([]byte("MemTotal: 18446744073709551615 kB\nMemTotal: 5 kB\n"))
	f.Add([]byte("cpu 1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\npswpin 9223372036854775807\npswpout 1\n"))
	f.Add([]byte("always [madvise] never\nCpus_allowed_list:\t0-3\n"))
	f.Add([]byte("# pack-refs with: peeled\n0123456789012345678901234567890123456789 refs/heads/main\n^x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := Sample{Busy: -1, Steal: -1, Total: -1}
		parseTimes(data, &s)
		if math.IsNaN(s.Busy) || s.Busy < -1 || s.Total < s.Busy {
			t.Errorf("%q is %+v", data, s)
		}
		if n := parseSwapped(data); n < -1 {
			t.Errorf("%q has %d swapped pages", data, n)
		}
		if v := parseMeminfo(data, "MemTotal"); strings.Trim(v, "0123456789") != "" {
			t.Errorf("%q has %s bytes", data, v)
		}
		if h := parsePacked(data, "refs/heads/main"); h != "" && !isHash(h) {
			t.Errorf("%q is no hash", h)
		}
		var all list
		first, _, _ := strings.Cut(string(data), "\n")
		all.add(Identity, strings.TrimSpace(first), chosen(string(data)))
		checkConditions(t, all)
	})
}
