// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
)

// loadedPrograms returns the eBPF programs that the kernel holds now.
func loadedPrograms(t *testing.T) map[ebpf.ProgramID]bool {
	t.Helper()
	ids := map[ebpf.ProgramID]bool{}
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			return ids
		}
		if err != nil {
			t.Fatal(err)
		}
		ids[next], id = true, next
	}
}

func TestKilledAgentLeavesNoProbe(t *testing.T) {
	before := loadedPrograms(t)
	a := agent(t)
	mine := map[ebpf.ProgramID]bool{}
	for id := range loadedPrograms(t) {
		if !before[id] {
			mine[id] = true
		}
	}
	if len(mine) < 10 {
		t.Fatalf("the agent has %d programs in the kernel", len(mine))
	}
	if err := a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = a.ended(t, testLimit)
	eventually(t, testLimit, "the kernel to release the probes", func() error {
		for id := range loadedPrograms(t) {
			if mine[id] {
				return fmt.Errorf("program %d is still there", id)
			}
		}
		return nil
	})
}

func TestSIGTERMEndsWithinFiveSeconds(t *testing.T) {
	inOneOf(t, 5, func() error { // other load may delay the end
		s := start(t, "up", "--data-dir", t.TempDir(), "--interval", "1s")
		time.Sleep(2 * time.Second)
		began := time.Now()
		s.stop(t)
		if took := time.Since(began); took > 5*time.Second {
			return fmt.Errorf("it took %s to end", took)
		}
		return nil
	})
}

// The kernel accepts any bytes except NUL and "/" as a program's name. Labels are text on one line.
func TestNamesThatAreNoText(t *testing.T) {
	a := agent(t)
	run(t, prog(t, "calls", "q\"\\n\n\xff\xfe e2e"))
	if got := a.scrape(t).sum("teescope_execs_total", "workload", "q\"\\n\ufffd\ufffd e2e") +
		a.scrape(t).sum("teescope_execs_total", "workload", "q\"\\n\ufffd\ufffd\ufffd e2e"); got < 1 {
		t.Errorf("no workload has the program: %v", a.scrape(t).by("workload", "teescope_execs_total"))
	}
}

// A target that never answers, one that never ends and one that sends no metrics are each down. The others are scraped
// as usual.
func TestHostileTargetsHurtOnlyThemselves(t *testing.T) {
	release := make(chan struct{})
	targets := map[string]http.HandlerFunc{
		"hangs": func(http.ResponseWriter, *http.Request) { <-release },
		"endless": func(w http.ResponseWriter, r *http.Request) {
			line := strings.Repeat("a", 4000) + " 1\n"
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, line); err != nil {
					return
				}
			}
		},
		"garbage": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>\x00{{{ no metrics") },
	}
	args := []string{"--data-dir", t.TempDir(), "--interval", "1s"}
	for name, handler := range targets {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		args = append(args, "--scrape", name+"="+server.URL)
	}
	t.Cleanup(func() { close(release) }) // the servers wait for it when they close
	s := start(t, "up", args...)
	for name := range targets {
		eventually(t, testLimit, name+" to be down", func() error {
			up, err := query("http://"+s.addr, fmt.Sprintf("sum(up{job=%q})", name), time.Now())
			if err == nil && len(up) != 1 {
				err = fmt.Errorf("up is %v", up)
			}
			for _, v := range up {
				if v != 0 {
					err = fmt.Errorf("up is %v", v)
				}
			}
			return err
		})
	}
	// On a busy machine one of its scrapes may be late.
	eventually(t, testLimit, "the agent itself to be scraped for ten seconds", func() error {
		least, err := query("http://"+s.addr, `sum(min_over_time(up{job="teescope"}[10s]))`, time.Now())
		if err == nil && least["{}"] != 1 {
			err = fmt.Errorf("up is %v", least)
		}
		return err
	})
	if err := s.cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Error(err)
	}
}
