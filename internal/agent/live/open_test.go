// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/agent/tee"
)

// The open files of this process are counted from the files of the kernel. A socket that listens under a name of Gramine counts,
// and so does a socket that it has accepted. The socket that connected has no name and does not count. A socket with another name
// does not count either.
func TestOpenSocketsAndFiles(t *testing.T) {
	finder := New(Machine{Roots: tee.Roots{Proc: "/proc", Sys: "/sys", Dev: "/dev"}, Cgroup: "/sys/fs/cgroup"}, nil)
	pid := os.Getpid()
	if n := finder.process(pid, true).Pipes; n == nil || *n != 0 {
		t.Fatalf("pipes at first: %v", n)
	}
	name := fmt.Sprintf("@/gramine/%d/test", pid)
	gramine, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer gramine.Close()
	other, err := net.Listen("unix", fmt.Sprintf("@gramine/%d", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	client, err := net.Dial("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	accepted, err := gramine.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	if n := finder.process(pid, true).Pipes; n == nil || *n != 2 {
		t.Errorf("pipes: %v, want 2", n)
	}
	if n := finder.process(pid, false).Pipes; n != nil {
		t.Errorf("pipes of a program that is not in Gramine: %v", *n)
	}

	dir := t.TempDir()
	t.Chdir(dir)
	for _, file := range []string{"db/a", "db/deep/b", "db2/c", "single", "other"} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		open, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		defer open.Close()
	}
	for want, files := range map[int][]string{0: nil, 2: {"db/"}, 3: {"db", "./single", "none"}, 4: {filepath.Join(dir, "db"), "db2", "single"}, 5: {dir}} {
		p := Program{Live: advise.Live{Processes: []advise.Process{{PID: pid}, {PID: 1 << 30}}}}
		finder.Encrypted(&p, files)
		if n := p.Processes[0].Encrypted; n == nil || *n != want {
			t.Errorf("%q: %v open files, want %d", files, n, want)
		}
		if p.Processes[1].Encrypted != nil {
			t.Error("a process that does not run has a number of open files")
		}
	}
}
