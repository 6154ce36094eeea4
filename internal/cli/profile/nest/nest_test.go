// SPDX-License-Identifier: Apache-2.0

package nest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/cli/profile/child"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// program compiles the program that knows its calls.
func program(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "calls")
	if out, err := exec.Command("gcc", "-O2", "-pthread", "-o", name, "../../../agent/nested/testdata/calls.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

// files returns the files of a measurement: its output can be read afterwards.
func files(t *testing.T) child.Files {
	t.Helper()
	var f child.Files
	for _, to := range []**os.File{&f.In, &f.Out, &f.Err} {
		file, err := os.Create(filepath.Join(t.TempDir(), "file"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		*to = file
	}
	return f
}

func content(t *testing.T, f *os.File) string {
	t.Helper()
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

type part struct {
	Name          string
	Calls         int
	Seconds       float64
	P50           *float64 `json:"p50_seconds"`
	ShareOfRoot   *float64 `json:"share_of_root"`
	Caller        string
	ShareOfCaller *float64 `json:"share_of_caller"`
}

// thrower compiles a program whose calls of a function end by an exception.
func thrower(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "thrower")
	gcc := exec.Command("gcc", "-x", "c++", "-o", name, "-", "-lstdc++")
	gcc.Stdin = strings.NewReader(`extern "C" __attribute__((noinline)) void thrown() { throw 1; }
	int main() { try { thrown(); } catch (int) {} return 0; }`)
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

// Functions that no exception leaves can be timed.
func TestForce(t *testing.T) {
	status, err := Run(t.Context(), Options{Functions: []string{"main"}, Command: []string{thrower(t)}, Files: files(t), Force: true})
	if err != nil || status != 0 {
		t.Errorf("%d, %v of calls that no exception leaves", status, err)
	}
}

// A command has its figures as JSON after its own output.
func TestCommand(t *testing.T) {
	f := files(t)
	status, err := Run(t.Context(), Options{
		Functions: []string{"root", "child", "grandchild"}, Command: []string{program(t), "threads", "50"}, JSON: true, Files: f,
	})
	if err != nil || status != 0 {
		t.Fatalf("%d, %v", status, err)
	}
	out := content(t, f.Out)
	var n struct {
		Costs map[string]struct {
			Whole float64 `json:"whole_seconds"`
		} `json:"probe_costs"`
		Parts []part
	}
	_, object, _ := strings.Cut(out, "{")
	if err := json.Unmarshal([]byte("{"+object), &n); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(n.Parts) != 3 || n.Costs["emulated"].Whole <= 0 || n.Costs["stepped"].Whole <= 0 {
		t.Fatalf("%s", out)
	}
	for i, p := range n.Parts {
		if p.Calls != 200 || p.P50 == nil || p.ShareOfRoot == nil || p.Seconds < 200*20e-6/2 {
			t.Errorf("%+v", p)
		}
		if i > 0 && (p.Caller != n.Parts[i-1].Name || *p.ShareOfRoot >= *n.Parts[i-1].ShareOfRoot) {
			t.Errorf("%+v in %+v", p, n.Parts[i-1])
		}
	}
}

// A process that runs already is timed until the context ends.
func TestProcess(t *testing.T) {
	cmd := exec.Command(program(t), "threads", "100000000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	var others []int
	for len(others) == 0 { // until it has another thread
		threads, err := hostfs.At("/proc").Process(cmd.Process.Pid).Threads(8)
		if err != nil {
			t.Fatal(err)
		}
		others = slices.DeleteFunc(threads, func(id int) bool { return id == cmd.Process.Pid })
	}
	if _, err := Run(t.Context(), Options{Functions: []string{"root"}, PID: others[0], For: time.Second, Files: files(t)}); err == nil || !strings.Contains(err.Error(), "this is a thread") {
		t.Errorf("a thread: %v", err)
	}
	f := files(t)
	status, err := Run(t.Context(), Options{Functions: []string{"root", "(grand)?child"}, PID: cmd.Process.Pid, For: time.Second, Files: f})
	if err != nil || status != 0 {
		t.Fatalf("%d, %v", status, err)
	}
	out := content(t, f.Out)
	for _, s := range []string{" calls of root in ", "share of root", "\n(grand)?child  ", " of root "} {
		if !strings.Contains(out, s) {
			t.Errorf("%q is missing in\n%s", s, out)
		}
	}
}

// An interruption ends the command and shows what there is.
func TestInterrupted(t *testing.T) {
	f := files(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if data, err := os.ReadFile(f.Out.Name()); err == nil && bytes.Contains(data, []byte("worked")) {
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	name := program(t)
	status, err := Run(ctx, Options{
		Functions: []string{"root"}, Binary: name, Files: f,
		Command: []string{"sh", "-c", name + " threads 5 >/dev/null; echo worked; while :; do :; done"},
	})
	if err != nil || status != 128+15 || !strings.Contains(content(t, f.Out), "20 calls of root in ") {
		t.Errorf("%d, %v\n%s", status, err, content(t, f.Out))
	}
}

func TestErrors(t *testing.T) {
	name := program(t)
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"+name+" many 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		Options
		want string
	}{
		{Options{Functions: []string{"root"}, Command: []string{"no-such-command"}}, "check its name and PATH"},
		{Options{Functions: []string{"root"}, Command: []string{script}}, "not an ELF file for x86-64: name the program or library that has the functions with --binary"},
		{Options{Functions: []string{"no_function"}, Command: []string{name, "many", "1"}}, "it has no function no_function"},
		{Options{Functions: []string{"root"}, Command: []string{name, "many", "1"}}, "no call of root returned in "},
		{Options{Functions: []string{"thrown"}, Command: []string{thrower(t)}}, "exceptions of C++: one that passes through a function whose return is probed ends the program: record a profile, or use --force"},
		{Options{Functions: []string{"root"}, PID: 1 << 22}, "--pid 4194304: there is no such process"},
		{Options{Functions: []string{"root"}, PID: os.Getpid(), Binary: "/no/such"}, "/no/such"},
		{Options{Functions: []string{"main.main"}, PID: os.Getpid()}, "it is a Go program"},
	} {
		c.Files = files(t)
		if _, err := Run(t.Context(), c.Options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %d: %v\n\twant %s", c.Command, c.PID, err, c.want)
		}
	}
}
