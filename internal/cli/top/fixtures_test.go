// SPDX-License-Identifier: Apache-2.0

package top

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/teescope/teescope/internal/lib/goldentest"
)

var update = flag.Bool("update", false, "write the golden files again")

// The samples of testdata were recorded two seconds apart. The time of recording does not matter.
var recorded = time.Date(2026, 3, 4, 15, 4, 5, 0, time.UTC)

func sample(t *testing.T, name string, at time.Time) *Sample {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseExposition(data)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	s.At = at
	return s
}

// exposed parses the text of an exposition.
func exposed(t *testing.T, at time.Time, lines ...string) *Sample {
	t.Helper()
	s, err := parseExposition([]byte(strings.Join(lines, "\n") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	s.At = at
	return s
}

var options = Options{Target: "127.0.0.1:9750", Interval: 2 * time.Second, Sort: "calls"}

// live is a model that has seen two samples.
func live(t *testing.T, prefix string) model {
	t.Helper()
	m := newModel(options, sample(t, prefix+"before.prom", recorded))
	return m.take(sample(t, prefix+"after.prom", recorded.Add(2*time.Second)))
}

// press sends keys to a model. A key of one letter types it.
func press(t *testing.T, m model, keys ...string) model {
	t.Helper()
	for _, k := range keys {
		text := ""
		if len(k) == 1 {
			text = k
		}
		var quit bool
		if m, quit = m.press(k, text); quit {
			t.Fatalf("%s quits", k)
		}
	}
	return m
}

// plain returns a view without its styles.
func plain(m model) string {
	lines := strings.Split(ansi.Strip(screen{&m}.view()), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// golden compares text with a file, which -update writes.
func golden(t *testing.T, name, got string) {
	t.Helper()
	goldentest.Check(t, filepath.Join("testdata", name+".golden"), got, *update)
}
