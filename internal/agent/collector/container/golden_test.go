// SPDX-License-Identifier: Apache-2.0

package container

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
	"github.com/teescope/teescope/internal/lib/metric/metrictest"
)

var update = flag.Bool("update", false, "write the golden files again")

var heading = regexp.MustCompile(`(?m)^-- (.+) --\n`)

// unpack creates the files of a fake machine from one text. Each file follows a line "-- PATH --".
func unpack(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	root, text := t.TempDir(), string(data)
	at := heading.FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		hostfstest.Write(t, root, text[m[2]:m[3]], text[m[1]:end])
	}
	return root
}

// fake returns a collector for a machine below root at a fixed time.
func fake(root string) *Collector {
	at := func(name string) string { return filepath.Join(root, name) }
	c := New(Options{
		Proc: at("proc"), Sys: at("sys"), Cgroup: at("cgroup"),
		Storage: []string{at("storage")}, Docker: at("docker"), Containerd: at("containerd"),
	})
	c.now = func() time.Time { return time.Unix(1_700_001_000, 0) }
	return c
}

// exposition returns the text of one scrape in the format for Prometheus. A duplicate series is an error.
func exposition(t testing.TB, c *Collector) []byte {
	t.Helper()
	return metrictest.Text(t, func(emit func(prometheus.Metric)) {
		if err := c.Collect(t.Context(), emit); err != nil {
			t.Error(err)
		}
	})
}

// The expositions of the machines in testdata equal the golden files. Rewrite these with:
// go test ./internal/agent/collector/container -run Golden -update
func TestGoldenExposition(t *testing.T) {
	for _, machine := range []string{"v2", "v1", "hybrid"} {
		got := exposition(t, fake(unpack(t, machine+".txt")))
		golden := "testdata/" + machine + ".golden"
		metrictest.Golden(t, golden, got, *update)
	}
}

// Every family of a scrape is described, and has the described type.
func TestEveryFamilyIsDescribed(t *testing.T) {
	c := fake(unpack(t, "v2.txt"))
	described := map[string]string{}
	for _, d := range c.Describe() {
		if described[d.Name] != "" {
			t.Errorf("%s is described twice", d.Name)
		}
		described[d.Name] = d.Kind.String()
	}
	emitted := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllSubmatch(exposition(t, c), -1) {
		emitted[string(m[1])] = true
		if got, want := string(m[2]), described[string(m[1])]; got != want {
			t.Errorf("%s is a %s but is described as %q", m[1], got, want)
		}
	}
	for name := range described {
		if !emitted[name] && name != c.families.change.Name { // a change needs two containers
			t.Errorf("%s is described, but the machine with all files does not emit it", name)
		}
	}
}

// sample returns the value of the only sample whose text contains all parts, or "" without one.
func sample(t *testing.T, text []byte, family string, parts ...string) string {
	t.Helper()
	found := ""
next:
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, family+"{") {
			continue
		}
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue next
			}
		}
		if found != "" {
			t.Fatalf("two samples of %s%v", family, parts)
		}
		found = strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:])
	}
	return found
}

func id(n int) string { return fmt.Sprintf("%064x", n+1) }

// group returns the control group of the n-th fake container.
func group(n int) string { return "cgroup/system.slice/docker-" + id(n) + ".scope" }
