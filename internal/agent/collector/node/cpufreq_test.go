// SPDX-License-Identifier: Apache-2.0

package node

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// frequencies returns the current frequencies of a part, by CPU.
func frequencies(t *testing.T, p part, family string) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(unchecked(func(ch chan<- prometheus.Metric) {
		_ = p.run(t.Context(), func(m prometheus.Metric) { ch <- m })
	}))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		if f.GetName() == family {
			all = series(f, "")
		}
	}
	return all
}

// Without a driver the frequency comes from /proc/cpuinfo. It is read again after a minute, or when the clock was set.
func TestFrequencyWithoutADriver(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	k := fakeKernel()
	now := k.now()
	k.now = func() time.Time { return now }
	o := Options{Proc: filepath.Join(dir, "proc"), Sys: filepath.Join(dir, "sys")}
	const family = "node_cpu_frequency_hertz"
	if got := frequencies(t, newFrequency(o, k), family); len(got) != 0 {
		t.Errorf("with a driver %v", got)
	}
	for _, cpu := range []string{"cpu0", "cpu1"} {
		if err := os.RemoveAll(filepath.Join(o.Sys, "devices/system/cpu", cpu, "cpufreq")); err != nil {
			t.Fatal(err)
		}
	}
	p := newFrequency(o, k)
	want := map[string]float64{`core="0",cpu="0",package="0"`: 2793.437e6, `core="1",cpu="1",package="0"`: 2793.438e6}
	is := func(when string, want map[string]float64) {
		t.Helper()
		if got := frequencies(t, p, family); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	is("at first", want)
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(o.Proc, "cpuinfo"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("processor\t: 0\ncpu MHz\t\t: 1000\nphysical id\t: 0\ncore id\t: 0\n")
	now = now.Add(frequenciesEvery - time.Second)
	is("within a minute", want)
	now = now.Add(-2 * frequenciesEvery)
	is("after the clock was set back", map[string]float64{`core="0",cpu="0",package="0"`: 1e9})
	for name, text := range map[string]string{
		"without a frequency": "processor\t: 0\nphysical id\t: 0\ncore id\t: 0\n",
		"of zero":             "processor\t: 0\ncpu MHz\t: 0.000\nphysical id\t: 0\ncore id\t: 0\n",
		"no number":           "processor\t: 0\ncpu MHz\t: NaN\nphysical id\t: 0\ncore id\t: 0\n",
		"a strange core":      "processor\t: 0\ncpu MHz\t: 1000\nphysical id\t: x\ncore id\t: 0\n",
		"something else":      "hello\n",
		"nothing":             "",
	} {
		write(text)
		now = now.Add(frequenciesEvery)
		is(name, map[string]float64{})
	}
}
