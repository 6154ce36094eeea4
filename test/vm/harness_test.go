// SPDX-License-Identifier: Apache-2.0

//go:build vm

package vm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/lib/metric/metrictest"
	"github.com/teescope/teescope/testbed/machine"
)

// kernel finds the newest kernel of a version and unpacks it.
func kernel(t *testing.T, version string) machine.Kernel {
	t.Helper()
	dir, err := filepath.Abs("../../.cache/vm")
	if err != nil {
		t.Fatal(err)
	}
	k, err := machine.Store(dir).Kernel(context.Background(), version)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, problems.String())
	}
	return string(out)
}

// parts is the directory of the machine's file system.
var parts string

// built is how the parts were built, which the first test does for all.
var built = sync.OnceValue(build)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if parts, err = os.MkdirTemp("", "teescope-vm-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(parts)
		return m.Run()
	}())
}

// image returns the directory of the machine's file system: the first process, the guest program under all its names,
// the real binary, and the tests of the confinement. All are static.
func image(t *testing.T) string {
	t.Helper()
	if err := built(); err != nil {
		t.Fatal(err)
	}
	return parts
}

func build() error {
	for _, build := range []struct{ name, from, how, link string }{
		{"init", "../../testbed/guest", "build", "-s -w"}, {"guest", "./guest", "build", "-w"}, // profiles need its symbols
		{"teescope", "../../cmd/teescope", "build", "-s -w"}, {"privilege.test", "../../internal/lib/privilege", "test -c", "-s -w"},
		{"driver.test", "../../internal/agent/tee/sgx/driver", "test -c", "-s -w"},
		{"boundary.test", "../../internal/agent/tee/sgx/boundary", "test -c", "-s -w"},
		{"nested.test", "../../internal/agent/nested", "test -c", "-s -w"},
	} {
		args := append(strings.Fields(build.how), "-trimpath", "-ldflags", build.link, "-o", filepath.Join(parts, build.name), build.from)
		cmd := exec.Command("go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", cmd, err, out)
		}
	}
	if err := buildApp(filepath.Join(parts, "sdk")); err != nil {
		return err
	}
	for _, name := range []string{"known", "steady", "hopper", "competes", "burner", "spinner", "preempted", "threads", "zeros", "reader", "qemu-tiny", "firecracker-tiny"} {
		if err := os.Link(filepath.Join(parts, "guest"), filepath.Join(parts, name)); err != nil {
			return err
		}
	}
	return nil
}

// trial is one virtual machine and its scenario.
type trial struct {
	kernel   machine.Kernel
	files    string
	loaded   []machine.Module // before the scenario
	cpus     int
	scenario string
	line     string            // more of the kernel's command line
	modules  []machine.Module  // in /kvm, for the scenario to load
	drivers  map[string][]byte // modules in /drivers, by their name
	disks    []string
}

// report is the output of a guest by section.
type report map[string]string

// boot runs the guest and returns its output.
func boot(t *testing.T, try trial) report {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	m := machine.Machine{Kernel: try.kernel, Guest: filepath.Join(try.files, "init"), CPUs: try.cpus, MemoryMiB: 1536, Append: try.line, Disks: try.disks}
	var out, problems bytes.Buffer
	result, err := m.Run(ctx, machine.Command{
		Argv: []string{"/guest", try.scenario}, Modules: try.loaded, Env: []string{"HOME=/", "TERM=linux"}, Stdout: &out, Stderr: &problems,
		Files: func(a *machine.Archive) error {
			for i, m := range try.modules {
				a.Bytes(fmt.Sprintf("/kvm/%02d-%s.ko", i, m.Name), 0o644, m.Object)
			}
			for name, object := range try.drivers {
				a.Bytes("/drivers/"+name+".ko", 0o644, object)
			}
			return a.Tree("/", try.files)
		},
	})
	if err != nil || result.Exit != 0 {
		t.Fatalf("the guest ended with status %d (%v): %s\n%s", result.Exit, err, problems.String(), out.String())
	}
	t.Logf("the machine ran for %v", time.Since(began).Round(100*time.Millisecond))
	for _, line := range result.Trouble {
		t.Errorf("the guest's kernel says: %s", line)
	}
	r := sections(out.String())
	if len(r) == 0 {
		t.Fatalf("the guest printed nothing:\n%s", out.String())
	}
	return r
}

// sections splits what a guest printed.
func sections(out string) report {
	r := report{}
	for _, s := range regexp.MustCompile(`(?ms)^==== ([^\n]+)\n(.*?)\n?==== end$`).FindAllStringSubmatch(out, -1) {
		r[s[1]] = s[2]
	}
	return r
}

// exposition parses a section.
func (r report) exposition(t *testing.T, name string) map[string]*dto.MetricFamily {
	t.Helper()
	return metrictest.Families(t, []byte(r[name]+"\n"))
}

// answer returns the result of a query, or NaN without one.
func (r report) answer(t *testing.T, name string) float64 {
	t.Helper()
	var answer struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if err := json.Unmarshal([]byte(r[name]), &answer); err != nil {
		t.Fatalf("%s: %v in %q", name, err, r[name])
	}
	if len(answer.Data.Result) != 1 {
		return math.NaN()
	}
	return metrictest.Number(t, fmt.Sprint(answer.Data.Result[0].Value[1]))
}

// sum adds up the samples of a family with these labels.
func sum(families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	return metrictest.Sum(metrictest.Matching(families[name], labels...))
}
