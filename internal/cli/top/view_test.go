// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/teescope/teescope/internal/lib/remote"
)

func TestViews(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {160, 50}} {
		for _, tt := range []struct {
			name, samples string
			keys          []string
		}{
			{"list", "", nil},
			{"detail", "", []string{"down", "enter"}},
			{"help", "", []string{"?"}},
			{"enclaves", "enclaves-", nil},
			{"each-enclave", "enclaves-", []string{"x"}},
			{"vms", "vms-", nil},
			{"each-vm", "vms-", []string{"V"}},
		} {
			name := fmt.Sprintf("%s-%dx%d", tt.name, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				m := press(t, live(t, tt.samples).resize(size[0], size[1]), tt.keys...)
				golden(t, name, plain(m))
			})
		}
	}
}

// At any size of the terminal, no line is wider and no view is higher than the terminal.
func TestViewsFit(t *testing.T) {
	list := list(t, "threads-after.json", recorded)
	for _, samples := range []string{"", "enclaves-", "vms-"} {
		fresh := live(t, samples)
		for _, keys := range [][]string{nil, {"enter"}, {"?"}, {"/", "r", "e"}, {"/", "#"}, {"end"}, {"enter", "end"}, {"space"}, {"x"}, {"V"}, {"enter", "t"}} {
			for _, width := range []int{1, 2, 15, 40, 60, 77, 78, 79, 80, 81, 100, 120, 132, 200, 400} {
				for _, height := range []int{1, 2, 3, 5, 10, 24, 100} {
					m := press(t, fresh.resize(width, height), keys...)
					m = m.takeThreads(m.threads.workload, list, nil)
					lines := strings.Split(screen{&m}.view(), "\n")
					if len(lines) > height {
						t.Errorf("%v at %dx%d: %d lines", keys, width, height, len(lines))
					}
					for _, l := range lines {
						if w := ansi.StringWidth(l); w > width {
							t.Errorf("%v at %dx%d: a line of %d columns: %q", keys, width, height, w, l)
						}
					}
				}
			}
		}
	}
}

// A terminal that reports no size is treated as the smallest usual one.
func TestUnknownSize(t *testing.T) {
	m := live(t, "")
	if got, want := plain(m.resize(0, 0)), plain(m.resize(80, 24)); got != want {
		t.Errorf("without a size:\n%s\nwant:\n%s", got, want)
	}
}

// A value that was not measured is shown as a dash, not as zero.
func TestFirstSampleHasNoRates(t *testing.T) {
	m := newModel(options, sample(t, "before.prom", recorded))
	text := plain(m)
	for line := range strings.Lines(text) {
		if strings.Contains(line, "redis-server") {
			if f := strings.Fields(strings.TrimPrefix(line, ">")); f[2] != "-" || f[3] != "-" || f[6] != "-" || f[8] == "-" {
				t.Errorf("the first row of redis-server is %q", line)
			}
		}
	}
	if !strings.Contains(text, "First scrape; rates with the next") {
		t.Errorf("the view does not say why:\n%s", text)
	}
	if text := plain(press(t, m, "enter")); !strings.Contains(text, "no rates yet") {
		t.Errorf("the detail does not say why:\n%s", text)
	}
}

func TestAgentGoesAwayAndComesBack(t *testing.T) {
	m := live(t, "")
	gone := &remote.NotListeningError{Target: "127.0.0.1:9750"}
	m = m.lose(gone, recorded.Add(4*time.Second)).lose(gone, recorded.Add(10*time.Second))
	text := plain(m)
	if !strings.Contains(text, "NO ANSWER for 6 s: nothing listens there; retrying") || !strings.Contains(text, "redis-server") {
		t.Errorf("without an agent the view is:\n%s", text)
	}
	again := sample(t, "before.prom", recorded.Add(12*time.Second))
	again.Started += 11
	m = m.take(again)
	if text := plain(m); !strings.Contains(text, "The agent was restarted") || strings.Contains(text, "NO ANSWER") {
		t.Errorf("after a restart the view is:\n%s", text)
	}
	next := sample(t, "after.prom", recorded.Add(14*time.Second))
	next.Started = again.Started
	if got, want := m.take(next).table, live(t, "").table; got.Restarted || len(got.Rows) != len(want.Rows) || got.Over != want.Over {
		t.Errorf("after a restart and one more scrape the table is %+v", got)
	}
}

func TestWorkloadGoesWhileInDetail(t *testing.T) {
	m := press(t, live(t, ""), "enter")
	name := m.detail.Workload
	s := sample(t, "after.prom", recorded.Add(4*time.Second))
	delete(s.Workloads, m.detail.Key)
	text := plain(m.take(s))
	if !strings.Contains(text, "GONE: this workload is no longer exposed") || !strings.Contains(text, name) {
		t.Errorf("the view of a workload that is gone:\n%s", text)
	}
}

// The screens in the document are those of the program.
func TestDocumentShowsTheView(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/user/top.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{plain(live(t, "")), plain(press(t, live(t, ""), "down", "enter"))} {
		for line := range strings.Lines(text) {
			if !strings.Contains(string(doc), line) {
				t.Errorf("docs/user/top.md lacks the line %q", line)
			}
		}
	}
	table, _, _ := strings.Cut(plain(threaded(t)), "\n\n") // below it are only the keys
	if !strings.Contains(string(doc), table) {
		t.Errorf("docs/user/top.md lacks the table\n%s", table)
	}
}
