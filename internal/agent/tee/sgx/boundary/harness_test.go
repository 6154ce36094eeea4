// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/boundarytest"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
	"github.com/teescope/teescope/internal/lib/proctest"
	"github.com/teescope/teescope/internal/lib/waittest"
	"github.com/teescope/teescope/internal/lib/watch"
)

// TestMain lets the test binary act as an agent that can be killed.
func TestMain(m *testing.M) {
	if os.Getenv("TRANSITION_TEST_JOB") == "" {
		os.Exit(m.Run())
	}
	b := New(options(modeOn, 0))
	b.patience = time.Minute
	if err := b.Init(context.Background()); err != nil || b.object == nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for probed := false; !probed; time.Sleep(10 * time.Millisecond) {
		b.scanned = time.Time{}
		if err := b.tick(); err != nil {
			fmt.Println(err)
		}
		b.files.All(func(f *window.File) { probed = probed || f.Attached() })
	}
	fmt.Println("attached")
	time.Sleep(time.Hour)
}

func options(mode Mode, budget int) Options {
	roots := tee.Roots{Proc: "/proc", Dev: "/dev", Sys: "/sys"}
	return Options{
		Roots: roots, Detector: tee.NewDetector(roots, nil), Cgroup: "/sys/fs/cgroup",
		Mode: mode, Budget: budget, MaxWorkloads: 64, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
}

// start loads the backend into this kernel. A test is skipped only without privileges: an unsupported kernel
// fails it.
func start(t *testing.T, mode Mode, budget int) *Backend {
	t.Helper()
	return startWith(t, options(mode, budget))
}

func startWith(t *testing.T, o Options) *Backend {
	t.Helper()
	privilegetest.Alone(t)
	b := New(o)
	b.patience = time.Minute // each read has a deadline of its own
	if err := b.Init(context.Background()); err != nil {
		t.Fatal(err)
	}
	if b.object == nil {
		t.Fatal("the programs were not loaded")
	}
	t.Cleanup(func() {
		if err := b.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

// look does what Run does until everything of the test's programs is read. The detector inspects some processes a second, the kernel
// may not report an inode while the mappings of this process change, and a process may not answer in time: each is asked again.
func look(t *testing.T, b *Backend) {
	t.Helper()
	waittest.Until(t, "all that is read of the programs", func() bool {
		glance(t, b)
		for _, p := range running {
			if p.ProcessState == nil && !isRead(b, uint32(p.Process.Pid)) {
				return false
			}
		}
		return true
	})
}

// glance does what Run does within a few seconds. A read that has failed is not repeated.
func glance(t *testing.T, b *Backend) {
	t.Helper()
	for range 2 {
		b.scanned, b.read = time.Time{}, time.Time{}
		if err := b.tick(); err != nil {
			t.Error(err)
		}
	}
}

// isRead reports whether a process is known, its files are opened and probed, and the rules were compared with it.
func isRead(b *Backend, tgid uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.processes.Known(tgid)
	// A process that a rule has matched keeps that, also with another name.
	is, err := b.processes.Host.Described(tgid)
	if p == nil || p.Unopened || err == nil && (!p.Watched && watch.Matches(b.opts.Watch, is) || len(p.Demanded) == 0 && watch.Matches(b.Demands.get(), is)) {
		return false
	}
	for file := range p.Files {
		if file.Waits() && len(file.Sites) > 0 && !file.Attached() {
			return false
		}
	}
	return true
}

// build compiles a C program of testdata.
func build(t *testing.T, out string, args ...string) string {
	t.Helper()
	return boundarytest.Build(t, out, args...)
}

// sdkApp builds the SDK's application under a unique name.
func sdkApp(t *testing.T, name string, flags ...string) string {
	t.Helper()
	return boundarytest.SDKApp(t, name, flags...)
}

// target is a program that executes one command per line of its input.
type target struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// running are the programs of the test. Those that have ended stay in it.
var running []*target

func run(t *testing.T, path string) *target {
	t.Helper()
	return runAs(t, 0, path)
}

func runAs(t *testing.T, user uint32, path string) *target {
	t.Helper()
	cmd := exec.Command(path)
	if user != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	}
	cmd.Stderr = os.Stderr
	p := proctest.Start(t, cmd)
	one := &target{cmd, p.In, p.Out}
	running = append(running, one)
	t.Cleanup(func() {
		running = slices.DeleteFunc(running, func(other *target) bool { return other == one })
		_ = cmd.Process.Kill()
	})
	return one
}

// do sends a command and returns the answer.
func (p *target) do(t *testing.T, format string, args ...any) string {
	t.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		t.Fatal(err)
	}
	return p.answer(t)
}

func (p *target) answer(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the program gave no answer: %v", err)
	}
	return strings.TrimSpace(line)
}

// numbers parses an answer that consists of numbers.
func numbers(t *testing.T, answer string) []float64 {
	t.Helper()
	var all []float64
	for field := range strings.FieldsSeq(answer) {
		var n float64
		if _, err := fmt.Sscan(field, &n); err != nil {
			t.Fatalf("%q is not a number", field)
		}
		all = append(all, n)
	}
	return all
}

// scrape returns all samples by name and label values, in the form "name{a,b} ". It omits the container, pod and namespace
// of workloads. A histogram has its count, sum and each bucket, as in an exposition.
func scrape(t *testing.T, b *Backend) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	err := b.Collect(context.Background(), func(m prometheus.Metric) {
		var d dto.Metric
		if err := m.Write(&d); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(m.Desc().String(), `Desc{fqName: "`), `"`)
		var labels []string
		for _, l := range d.Label {
			if n := l.GetName(); n != "container" && n != "pod" && n != "namespace" {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
		}
		of := "{" + strings.Join(labels, ",") + "}"
		if h := d.Histogram; h != nil {
			all[name+"_count"+of], all[name+"_sum"+of] = float64(h.GetSampleCount()), h.GetSampleSum()
			for _, b := range h.Bucket {
				all[fmt.Sprintf("%s_bucket%s le=%.4g", name, of, b.GetUpperBound())] = float64(b.GetCumulativeCount())
			}
			return
		}
		all[name+of] = d.GetCounter().GetValue() + d.GetGauge().GetValue()
	})
	if err != nil {
		t.Error(err)
	}
	return all
}

// grown checks that counters grew by exact numbers between two scrapes.
func grown(t *testing.T, before, after map[string]float64, want map[string]float64) {
	t.Helper()
	for name, n := range want {
		if got := after[name] - before[name]; got != n {
			t.Errorf("%s grew by %v, want %v", name, got, n)
		}
	}
}
