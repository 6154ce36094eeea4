// SPDX-License-Identifier: Apache-2.0

package top

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// FuzzParseExposition: a faulty agent cannot break a terminal or a script. Two answers make a table. It is drawn on
// every page in two sizes, and written as text and as JSON.
func FuzzParseExposition(f *testing.F) {
	var texts [][]byte
	for _, name := range []string{"testdata/before.prom", "testdata/after.prom", "testdata/enclaves-before.prom", "testdata/enclaves-after.prom"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		texts = append(texts, data[:bytes.LastIndexByte(data[:min(len(data), 4000)], '\n')+1])
	}
	f.Add(texts[0], texts[1])
	f.Add(texts[2], texts[3])
	few := []byte(`teescope_workload_info{workload="a",kind="program",tee="sgx"} 1` + "\n" + `sgx_x{a="1"} NaN` + "\n")
	f.Add(few, few)
	f.Add([]byte(attachedCalls+"\n"+`teescope_syscalls_total{workload="a",syscall="read"} -1e308`+"\n"),
		[]byte(attachedCalls+"\n"+`teescope_syscalls_total{workload="a",syscall="read"} 1e308`+"\n"+`teescope_page_faults_total{workload="a",reason="x"} +Inf`+"\n"))
	f.Add([]byte(`teescope_syscalls_total{workload="a",syscall="\x1b",pid="1"} NaN`+"\n"), []byte("teescope_resident_memory_bytes{workload=\"\u009b\"} -1e300\n"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		before, err := parseExposition(first)
		if (err == nil) == (before == nil) {
			t.Fatal("an error and a sample, or neither")
		}
		after, err := parseExposition(second)
		if err != nil && (!utf8.ValidString(err.Error()) || reason(err) == "" || strings.ContainsFunc(reason(err), unicode.IsControl)) {
			t.Errorf("the error is %q", err)
		}
		if before == nil || after == nil {
			return
		}
		before.At, after.At = time.Unix(1000, 0), time.Unix(1002, 0)
		checkWritten(t, compare(before, after))
		for _, size := range [][2]int{{80, 24}, {200, 60}, {7, 3}} {
			m := newModel(options, before).resize(size[0], size[1]).take(after)
			for _, key := range []string{"", "enter", "end", "esc", "x", "esc", "r", "?"} {
				if key != "" {
					m, _ = m.press(key, "")
				}
				checkView(t, screen{&m}.view(), size[0], size[1])
			}
		}
	})
}

// checkWritten: rates are numbers or absent.
func checkWritten(t *testing.T, table rateTable) {
	t.Helper()
	var asJSON, text bytes.Buffer
	if err := writeJSON(&asJSON, "target", table); err != nil || !json.Valid(asJSON.Bytes()) {
		t.Errorf("%v: %s", err, asJSON.String())
	}
	if err := writeTable(&text, table); err != nil {
		t.Error(err)
	}
	if s := strings.ReplaceAll(text.String(), "\n", ""); !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		t.Errorf("%q is not printable", s)
	}
	for _, row := range table.Rows {
		for s, v := range row.Rates {
			if math.IsInf(v, 0) || math.IsNaN(v) || v < 0 {
				t.Errorf("%v has the rate %v", s, v)
			}
		}
	}
}

// checkView: the view fits the screen, and contains no control sequences except those of its own styles.
func checkView(t *testing.T, view string, width, height int) {
	t.Helper()
	lines := strings.Split(view, "\n")
	if view == "" || len(lines) > height {
		t.Errorf("%d lines on %d", len(lines), height)
	}
	for _, line := range lines {
		if ansi.StringWidth(line) > width {
			t.Errorf("%q is wider than %d", line, width)
		}
		if plain := ansi.Strip(line); !utf8.ValidString(plain) || strings.ContainsFunc(plain, unicode.IsControl) {
			t.Errorf("%q holds control characters", plain)
		}
	}
}
