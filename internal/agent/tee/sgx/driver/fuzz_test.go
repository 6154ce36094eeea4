// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/metric/metrictest"
)

// FuzzFiles writes arbitrary content into the files of a driver.
func FuzzFiles(f *testing.F) {
	f.Add([]byte("4096\n"), []byte("12 10 3000 4000 3500 24064 33 23000\n"), []byte("77 1 4096 5 4\n78 2 8192 6 5 1 3 2 123456\n"))
	f.Add([]byte("-1"), []byte("12 10 4000 3500 24064 33 23000 700 600 50"), []byte("1 1 1 1 1\n1 1 2 1 1\n"))
	f.Add([]byte("18446744073709551615"), []byte("10 12 1 1 1 1 1 1"), []byte("1 2 18446744073709551615 1 18446744073709551615 1 1 18446744073709551615\n3 4 4096 1 1 1 1 1\n"))
	f.Add([]byte{}, []byte{}, []byte(manyEnclaves(maxEnclaves+2)))

	f.Add([]byte{}, []byte{}, []byte("ffffffffc0000010 t sgx_vma_fault\t[isgx]\nzz t a\t[isgx]\n0 b c [isgx]\n"))

	root := f.TempDir()
	files := []string{
		"sys/devices/system/node/node0/x86/sgx_total_bytes", "sys/module/isgx/parameters/sgx_nr_free_pages",
		"proc/sgx_stats", "proc/sgx_enclaves",
	}
	for _, name := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, number, stats, enclaves []byte) {
		for i, data := range [][]byte{number, number, stats, enclaves} {
			if err := os.WriteFile(filepath.Join(root, files[i]), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		const most = 5*(maxEnclaves+1) + 50
		families := metrictest.Samples(t, most, func(emit func(prometheus.Metric)) {
			if err := reader(rootsAt(root)).Collect(t.Context(), emit); err != nil {
				checkError(t, err, root)
			}
		})
		metrictest.NoControls(t, families)
		for _, family := range families {
			for _, m := range family.GetMetric() {
				if v := m.GetGauge().GetValue() + m.GetCounter().GetValue(); v < 0 {
					t.Errorf("%s is %v", family.GetName(), v)
				}
			}
		}
		checkEnclaves(t, enclaves)
		if of, _ := findModule(bytes.NewReader(enclaves), moduleISGX); len(of) > bytes.Count(enclaves, []byte("["+moduleISGX+"]")) {
			t.Errorf("%d symbols of a module were read", len(of))
		}
	})
}

// checkError checks that an error names the file, and quotes little of its content.
func checkError(t *testing.T, err error, root string) {
	t.Helper()
	text := err.Error()
	if !strings.Contains(text, root) || len(text) > 2000 || strings.ContainsFunc(strings.ReplaceAll(text, "\n", ""), unicode.IsControl) {
		t.Errorf("the error is %q", text)
	}
}

// checkEnclaves checks that no enclave occurs twice, that the largest is first, that the sum is at least each
// value, and that formatted enclaves are parsed again.
func checkEnclaves(t *testing.T, data []byte) {
	t.Helper()
	all, _ := parseEnclaves(data)
	total := sum(all)
	seen := map[[2]uint64]bool{}
	var text strings.Builder
	for i, e := range all {
		if key := [2]uint64{e.id, e.pid}; seen[key] {
			t.Errorf("enclave %v occurs twice", key)
		} else {
			seen[key] = true
		}
		if i > 0 && all[i-1].size < e.size {
			t.Error("not sorted by size")
		}
		if total.size < e.size || total.resident < e.resident {
			t.Errorf("the sum of all is %+v, one is %+v", total, e)
		}
		fmt.Fprint(&text, e.pid, " ", e.id, " ", e.size, " ", e.added, " ", e.resident)
		for _, n := range []*uint64{e.versionArray, e.flags, e.pagedOut} {
			if n != nil {
				fmt.Fprint(&text, " ", *n)
			}
		}
		text.WriteByte('\n')
	}
	again, err := parseEnclaves([]byte(text.String()))
	if err != nil || len(again) != len(all) || len(all) > 0 && !reflect.DeepEqual(again, all) {
		t.Errorf("%q is read as %+v, %v", text.String(), again, err)
	}
}

func manyEnclaves(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d %d %d 1 1 1 1 1\n", i, i, i*4096)
	}
	return b.String()
}
