// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
	"github.com/teescope/teescope/internal/lib/watch"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read"
	"github.com/teescope/teescope/internal/run/profile/write"
)

// options are those of a recording into a directory of the test.
func options(t *testing.T, output string, command ...string) Options {
	t.Helper()
	privilegetest.Alone(t)
	format, err := write.Choose("", output)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := map[string]*os.File{}
	for _, name := range []string{"out", "err"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		files[name] = f
	}
	return Options{Frequency: 997, Event: profiling.Clock, Command: command, Output: filepath.Join(dir, output), Format: format, Out: files["out"], Err: files["err"]}
}

func content(t *testing.T, f *os.File) string {
	t.Helper()
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// processes are the names of the processes in a profile.
func processes(t *testing.T, file string) []string {
	t.Helper()
	p, err := read.Open(file, read.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range p.Samples {
		if p.Label(&p.Samples[i], profile.PID) == strconv.Itoa(os.Getpid()) {
			t.Errorf("the recorder itself is in the profile: %+v", p.Samples[i])
		}
		names = append(names, p.Label(&p.Samples[i], profile.Process))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// busy is a program of a name that uses a CPU in the kernel for a short time.
func busy(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.Symlink("/bin/dd", path); err != nil {
		t.Fatal(err)
	}
	return path + " if=/dev/zero of=/dev/null bs=1M count=4000 2>/dev/null"
}

// A command is recorded with its descendants, also those whose parent has ended, and without other processes.
func TestTheCommandAndItsDescendantsAreRecorded(t *testing.T) {
	orphan, child := busy(t, "e2eorphan"), busy(t, "e2echild")
	done := filepath.Join(t.TempDir(), "done")
	o := options(t, "p.pb.gz", "sh", "-c", fmt.Sprintf("( ( %s; : >%s ) & ); %s; while [ ! -e %s ]; do sleep 0.1; done; exit 7", orphan, done, child, done))
	status, err := Run(context.Background(), o)
	if err != nil || status != 7 {
		t.Fatalf("%d, %v: %s", status, err, content(t, o.Err))
	}
	names := processes(t, o.Output)
	for _, want := range []string{"e2eorphan", "e2echild"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not in %q", want, names)
		}
	}
	// A process has the name of the one that makes it until it runs its program.
	made := filepath.Base(os.Args[0])
	made = made[:min(len(made), 15)]
	for _, name := range names {
		if !slices.Contains([]string{"e2eorphan", "e2echild", "sh", "sleep", made}, name) {
			t.Errorf("%s is not a process of the command", name)
		}
	}
	if info, err := os.Stat(o.Output); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v, %v", info.Mode(), err)
	}
	if out := content(t, o.Out); !strings.Contains(out, "of the samples are unresolved") || !strings.Contains(out, "look truncated") {
		t.Errorf("the table says %s", out)
	}
}

// An interruption ends the recording and the command, and keeps what there is.
func TestAnInterruptedRecordingIsKept(t *testing.T) {
	worked := filepath.Join(t.TempDir(), "worked")
	o := options(t, "p.folded", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; : >"+worked+"; while :; do :; done")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(worked); err == nil {
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	status, err := Run(ctx, o)
	if err != nil || status != 128+15 {
		t.Fatalf("%d, %v: %s", status, err, content(t, o.Err))
	}
	data, err := os.ReadFile(o.Output)
	if err != nil || len(data) == 0 {
		t.Errorf("%q, %v", data, err)
	}
}

// Nothing is written if no sample was taken, and the error says why.
func TestNothingToRecord(t *testing.T) {
	o := options(t, "p.pb.gz")
	rule, err := watch.Parse("comm=e2enothing")
	if err != nil {
		t.Fatal(err)
	}
	o.Watch, o.For = []watch.Rule{rule}, 300*time.Millisecond
	if _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "--watch") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(o.Output); !os.IsNotExist(err) {
		t.Errorf("a file was written: %v", err)
	}
	o.Command, o.Watch, o.Output = []string{"true"}, nil, filepath.Join(o.Output, "missing", "p.pb.gz")
	if _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("%v", err)
	}
	o.Command = []string{"/nonexistent"}
	if _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("%v", err)
	}
}

// A recording is not lost if the wanted format has no room for it.
func TestARecordingIsSavedInAnotherFormat(t *testing.T) {
	r := run{Options: Options{Output: filepath.Join(t.TempDir(), "out.otlp")}}
	err := r.saved([]byte("packed"), profile.ErrLimit)
	if !errors.Is(err, profile.ErrLimit) || !strings.Contains(err.Error(), r.Output+".pb.gz") {
		t.Errorf("%v", err)
	}
	if data, err := os.ReadFile(r.Output + ".pb.gz"); err != nil || string(data) != "packed" {
		t.Errorf("%q, %v", data, err)
	}
}
