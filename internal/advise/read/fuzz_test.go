// SPDX-License-Identifier: Apache-2.0

package read

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// seeds has a file for each reader.
func seeds() []string {
	return []string{
		helloWorld, later, traced, straced, perfStat, hotspots, occlumTemplate, "SCONE_QUEUES=4\nQ 4\ne -1 0 0\nSCONE_HEAP=64M\n", `{"heapSize": 512}`,
		`{"resource_limits": {"user_space_size": "300MB"}}`, "NumTCS=1\n", "threads,sgx,direct,native\n1,1,2,3\n", "SGX supported by CPU: true\nEPC size: 0x5d80000\n",
	}
}

// readers gives the bytes to every reader, by its name. Each reports what its result may not be, and whether it knows the file.
func readers(t *testing.T, data []byte) map[string]func() error {
	config := func(parse func() (Config, error)) func() error {
		return func() error {
			c, err := parse()
			if c.Memory > 1<<60 || err != nil && c != (Config{}) {
				t.Errorf("%+v, %v", c, err)
			}
			return err
		}
	}
	return map[string]func() error{
		"configuration": config(func() (Config, error) { return ParseConfig(data) }),
		"JSON":          config(func() (Config, error) { return parseJSON(data) }),
		"YAML":          config(func() (Config, error) { return parseYAML(data) }),
		"properties":    config(func() (Config, error) { return parseProperties(data) }),
		"SCONE": func() error {
			c, err := parseSCONE(string(data))
			if err == nil && c == (Config{Runtime: "SCONE"}) {
				err = errNothing
			}
			return err
		},
		"hotspots": func() error {
			h, err := ParseHotspots(data)
			if share, _ := h.Share(func(string) bool { return true }); share < 0 || share > 1 || len(h.Rows) > 0 && err != nil {
				t.Errorf("a share of %v, %v", share, err)
			}
			return err
		},
		"scaling": func() error {
			loads, err := ParseScaling(data)
			for _, l := range loads {
				if a, b, known := l.Added(); known && (math.IsNaN(a) || math.IsInf(a, 0) || math.IsNaN(b) || math.IsInf(b, 0)) || l.Threads <= 0 {
					t.Errorf("%+v", l)
				}
			}
			return err
		},
		"stats": func() error {
			s, err := ParseStats(data)
			if s.Processes+s.Threads > 0 && s.Total.EENTERs > 1<<62 || s.Elapsed < 0 || s.CPU < 0 || len(s.Notes) > 12 || len(s.Counters) > maxCounters {
				t.Errorf("%+v", s)
			}
			return err
		},
		"is-sgx-available": func() error {
			_, err := ParseAvailable(data)
			return err
		},
		"calls": func() error {
			c, err := ParseCalls(data)
			if share, _ := c.Share("futex", "read"); share < 0 || share > 1 {
				t.Errorf("a share of %v", share)
			}
			return err
		},
		"traffic": func() error {
			m, err := ParseTraffic(data)
			files := m.Files(func(string) bool { return true })
			if m.All.Calls < files.Calls+m.Gramine.Calls || m.All.Bytes < files.Bytes || m.All.Bytes < m.Gramine.Bytes || err != nil && m.All.Calls > 0 {
				t.Errorf("%+v, %v", m, err)
			}
			return err
		},
		"log": func() error {
			l, err := ParseLog(data)
			if l.NoTCS.Count > l.Lines || l.RawSyscalls.Line > l.Lines || l.TCSs < 0 {
				t.Errorf("%+v", l)
			}
			return err
		},
	}
}

// The target reaches every reader: each knows at least one of the seeds, so mutations begin inside of all of them. A reader that
// this package exports and the list lacks fails too.
func TestSeedsReachEachReader(t *testing.T) {
	knows := make(map[string]bool)
	for _, text := range seeds() {
		for name, read := range readers(t, []byte(text)) {
			knows[name] = knows[name] || read() == nil
		}
	}
	for name, known := range knows {
		if !known {
			t.Errorf("no seed is a file for the reader %s", name)
		}
	}
	source, err := os.ReadFile("fuzz_test.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^func ([Pp]arse[A-Za-z]+)\((?:data|text) `).FindAllSubmatch(text, -1) {
			if !strings.Contains(string(source), string(match[1])+"(data)") && !strings.Contains(string(source), string(match[1])+"(string(data))") {
				t.Errorf("%s: the target does not call %s", file, match[1])
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range seeds() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, read := range readers(t, data) {
			if err := read(); err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("%s: not printable: %q", name, err)
			}
		}
	})
}
