// SPDX-License-Identifier: Apache-2.0

package live

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
)

// fake is a machine in a directory.
type fake struct {
	t   *testing.T
	dir string
}

func (f fake) machine() Machine {
	return Machine{Roots: tee.Roots{Proc: filepath.Join(f.dir, "proc"), Sys: filepath.Join(f.dir, "sys"), Dev: filepath.Join(f.dir, "dev")}, Cgroup: filepath.Join(f.dir, "cgroup")}
}

func (f fake) write(name, content string) {
	f.t.Helper()
	hostfstest.Write(f.t, f.dir, name, content)
}

func (f fake) link(name, target string) {
	f.t.Helper()
	hostfstest.Write(f.t, f.dir, name, "-> "+target)
}

// process adds a process with threads, each of which may run on a list of CPUs.
func (f fake) process(pid, parent, files int, args, maps string, allowed ...string) {
	f.t.Helper()
	at := "proc/" + strconv.Itoa(pid) + "/"
	f.write(at+"cmdline", strings.ReplaceAll(args, " ", "\x00")+"\x00")
	f.write(at+"comm", "loader\n")
	f.write(at+"status", "Name:\tloader\nUid:\t1000\t1000\t1000\t1000\n")
	f.write(at+"maps", maps)
	f.write(at+"cgroup", "0::/\n")
	f.write(at+"environ", "HOME=/root\x00SCONE_QUEUES=4\x00SCONE_HEAP=1G\x00SECRET=x\x00")
	f.link(at+"exe", "/usr/lib/"+strings.Fields(args)[0])
	f.link(at+"root", filepath.Join(f.dir, "container"))
	f.link(at+"cwd", "/app")
	for i, list := range allowed {
		thread := fmt.Sprintf("%stask/%d/", at, pid+i)
		f.write(thread+"stat", fmt.Sprintf("%d (loader) S %d 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 100 0 0", pid+i, parent))
		f.write(thread+"status", "Name:\tloader\nCpus_allowed:\tff\nCpus_allowed_list:\t"+list+"\n")
	}
	for i := range files {
		f.write(fmt.Sprintf("%sfd/%d", at, i), "")
	}
}

const (
	enclave = "7f0000000000-7f0000100000 rw-s 00000000 00:06 12 /dev/sgx_enclave\n7f0000100000-7f0040000000 rwxs 00000000 00:06 12 /dev/sgx_enclave\n"
	heap    = "5500000000-5500100000 rw-p 00000000 00:00 0 [heap]\n"
)

// newFake returns a machine of four cores with two hyper-threads each, on two nodes, with programs in Gramine and SCONE and others.
func newFake(t *testing.T) fake {
	f := fake{t, t.TempDir()}
	f.write("sys/devices/system/cpu/online", "0-7\n")
	for cpu := range 8 {
		f.write(fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu), fmt.Sprintf("%d,%d\n", cpu%4, cpu%4+4))
	}
	f.write("sys/devices/system/node/node0/cpulist", "0-1,4-5\n")
	f.write("sys/devices/system/node/node1/cpulist", "2-3,6-7\n")
	f.write("sys/devices/system/node/online", "0-1\n")
	f.process(100, 1, 5, "gramine/sgx/loader /usr/lib/gramine/sgx/libpal.so init redis-server", heap+enclave, "0-1,4-5", "0-1,4-5", "0,4,99")
	f.process(200, 100, 2, "gramine/sgx/loader /usr/lib/gramine/sgx/libpal.so child 7", enclave, "0")
	f.process(300, 1, 3, "gramine/direct/loader /usr/lib/gramine/direct/libpal.so init /srv/py", heap, "0-7")
	f.process(400, 1, 1, "ld-scone-x86_64.so.1 /opt/scone/lib/ld-scone-x86_64.so.1 /bin/db --port 1", enclave, "2", "3")
	f.process(500, 1, 1, "bash -c true", heap, "0-7")
	f.process(600, 500, 1, "gramine/sgx/loader /usr/lib/gramine/sgx/libpal.so child 7", enclave, "0") // of no program
	f.write("container/app/redis-server.manifest.sgx", "sgx.max_threads = 8\n")
	return f
}

func TestFind(t *testing.T) {
	f := newFake(t)
	finder := New(f.machine(), map[string]bool{"SCONE_QUEUES": true, "SCONE_HEAP": true, "SCONE_SLOTS": true})
	all, err := finder.Find(0)
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	for i := range all {
		finder.Read(&all[i])
	}
	redis := all[0]
	if redis.String() != "100 redis-server (gramine-sgx)" || string(redis.Text) != "sgx.max_threads = 8\n" || redis.Manifest != "/app/redis-server.manifest.sgx" || redis.Err != nil || redis.Workload != "redis-server" {
		t.Errorf("%+v", redis)
	}
	if got, want := fmt.Sprint(redis.Processes), fmt.Sprint([]advise.Process{{PID: 100, Threads: 3, Files: 5, Enclave: 1 << 30}, {PID: 200, Threads: 1, Files: 2, Enclave: 1 << 30}}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if redis.CPUs != 4 || redis.Cores != 2 || redis.Spare != 2 || redis.Nodes != 1 || !redis.Pinned {
		t.Errorf("%+v", redis.Live)
	}
	py := all[1]
	if py.Runtime != "gramine-direct" || py.Manifest != "/srv/py.manifest" || !errors.Is(py.Err, fs.ErrNotExist) || py.Processes[0].Enclave != 0 || py.CPUs != 8 || py.Nodes != 2 || py.Pinned || py.Spare != 0 {
		t.Errorf("%+v", py)
	}
	db := all[2]
	if db.App != "db" || fmt.Sprint(db.Settings) != "map[SCONE_HEAP:1G SCONE_QUEUES:4]" || db.CPUs != 2 || !db.Pinned || db.Text != nil {
		t.Errorf("%+v", db)
	}
	if one, err := finder.Find(200); err != nil || len(one) != 1 || one[0].first != 100 {
		t.Errorf("%+v, %v", one, err)
	}
	if none, err := finder.Find(500); err != nil || len(none) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
}

// A user can start more programs than the agent describes, and more processes of one program. A program that is named is still
// found. The version of Gramine is the version of the package beside its loader, as the process sees the package and may read it.
func TestVersionOfTheRunningGramine(t *testing.T) {
	const folder = "container/usr/lib/python3.11/site-packages/graminelibos/__init__.py"
	for content, want := range map[string]string{
		"__version__ = '1.7'\n": "1.7", "": "of an unknown version", "__version__ = '1.7\x1b[2J'\n": "of an unknown version", strings.Repeat("#\n", 1<<16) + "__version__ = '1.7'": "of an unknown version",
	} {
		f := newFake(t)
		f.write(folder, content)
		finder := New(f.machine(), nil)
		all, err := finder.Find(100)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		finder.Read(&all[0])
		if got := all[0].Gramine.String(); got != want {
			t.Errorf("%.30q is %s, want %s", content, got, want)
		}
	}
	f := newFake(t)
	f.write(folder, "__version__ = '1.7'\n")
	f.write(strings.Replace(folder, "3.11", "3.8", 1), "__version__ = '1.4'\n") // that of an earlier Python
	all, err := New(f.machine(), nil).Find(100)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	New(f.machine(), nil).Read(&all[0])
	if got := all[0].Gramine.String(); got != "1.4 to 1.7" {
		t.Errorf("two packages are %s", got)
	}
	f = newFake(t)
	f.write(folder, "__version__ = '1.7'\n")
	if err := os.Chmod(filepath.Join(f.dir, folder), 0o600); err != nil {
		t.Fatal(err)
	}
	finder := New(f.machine(), nil)
	all, _ = finder.Find(100)
	if finder.Read(&all[0]); os.Geteuid() == 0 && all[0].Gramine != nil {
		t.Errorf("a file that the user of the process may not read gives %v", all[0].Gramine)
	}
}

// The loader and the packages are in lib or lib64, as the distribution decides: get-python-platlib.py and gramine.spec of Gramine.
func TestPlacesOfGramine(t *testing.T) {
	for _, tt := range []struct{ exe, file string }{
		{"/usr/lib/x86_64-linux-gnu/gramine/sgx/loader", "/usr/lib/python3/dist-packages"},
		{"/usr/local/lib/x86_64-linux-gnu/gramine/sgx/loader", "/usr/local/lib/python3.11/dist-packages"},
		{"/usr/lib64/gramine/sgx/loader", "/usr/lib64/python3.9/site-packages"},
		{"/usr/local/lib64/gramine/direct/loader", "/usr/local/lib/python3.12/site-packages"},
		{"/opt/lib/gramine/lib64/gramine/sgx/loader", "/opt/lib/gramine/lib64/python3.6/site-packages"},
		{"/opt/lib64/a/lib/x86_64-linux-gnu/gramine/sgx/loader", "/opt/lib64/a/lib/python3.8/site-packages"},
	} {
		if all := packages(tt.exe); !slices.Contains(all, tt.file) || len(all) > 50 {
			t.Errorf("%s: %q, want %s", tt.exe, all, tt.file)
		}
		f := newFake(t)
		f.write("container"+tt.file+"/graminelibos/__init__.py", "__version__ = '1.7'\n")
		exe := filepath.Join(f.dir, "proc/100/exe")
		if err := os.Remove(exe); err != nil {
			t.Fatal(err)
		}
		f.link("proc/100/exe", tt.exe)
		finder := New(f.machine(), nil)
		all, err := finder.Find(100)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		if finder.Read(&all[0]); all[0].Gramine.String() != "1.7" {
			t.Errorf("%s: %s", tt.exe, all[0].Gramine)
		}
	}
	for _, exe := range []string{"/usr/bin/bash", "/usr/lib/gramine", "/srv/gramine/sgx/loader", ""} {
		if all := packages(exe); all != nil {
			t.Errorf("%s: %q", exe, all)
		}
	}
}

func TestFindAmongMany(t *testing.T) {
	f := newFake(t)
	for i := range maxPrograms {
		f.process(1000+i, 1, 0, "gramine/sgx/loader /usr/lib/gramine/sgx/libpal.so init false", heap, "0")
	}
	f.process(5000, 1, 0, "gramine/sgx/loader /usr/lib/gramine/sgx/libpal.so init late", heap, "0")
	finder := New(f.machine(), nil)
	if all, err := finder.Find(0); err != nil || len(all) != maxPrograms {
		t.Errorf("%d programs, %v", len(all), err)
	}
	if one, err := finder.Find(5000); err != nil || len(one) != 1 || one[0].App != "late" {
		t.Errorf("%+v, %v", one, err)
	}
}

// A device is not even opened, because opening one may do something to the machine. No driver has this one, so an open would fail
// in another way.
func TestManifestIsDevice(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes devices")
	}
	f := newFake(t)
	manifest := filepath.Join(f.dir, "container/app/redis-server.manifest.sgx")
	if err := errors.Join(os.Remove(manifest), unix.Mknod(manifest, unix.S_IFCHR|0o666, int(unix.Mkdev(240, 0)))); err != nil {
		t.Fatal(err)
	}
	finder := New(f.machine(), nil)
	all, err := finder.Find(100)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	if finder.Read(&all[0]); !errors.Is(all[0].Err, errKind) {
		t.Errorf("%v, want %v", all[0].Err, errKind)
	}
}

// A program cannot make teescope read a file outside of its root, wait for a writer, or read without an end.
func TestHostileManifest(t *testing.T) {
	const secret = "the host's secret"
	for name, prepare := range map[string]func(f fake, manifest string) error{
		"a link out of the root": func(f fake, manifest string) error {
			f.write("secret", secret)
			return os.Symlink(filepath.Join(f.dir, "secret"), manifest)
		},
		"a relative link out of the root": func(f fake, manifest string) error {
			f.write("secret", secret)
			return os.Symlink("../../secret", manifest)
		},
		"a file that only another user may read": func(_ fake, manifest string) error { return os.WriteFile(manifest, []byte("a = 1"), 0o600) },
		"a pipe":                                 func(_ fake, manifest string) error { return unix.Mkfifo(manifest, 0o644) },
		"a directory":                            func(_ fake, manifest string) error { return os.Mkdir(manifest, 0o755) },
		"more than the limit": func(_ fake, manifest string) error {
			if err := os.WriteFile(manifest, nil, 0o644); err != nil {
				return err
			}
			return os.Truncate(manifest, 1<<40)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			manifest := filepath.Join(f.dir, "container/app/redis-server.manifest.sgx")
			if err := errors.Join(os.Remove(manifest), prepare(f, manifest)); err != nil {
				t.Fatal(err)
			}
			finder := New(f.machine(), nil)
			all, err := finder.Find(100)
			if err != nil || len(all) != 1 {
				t.Fatalf("%+v, %v", all, err)
			}
			if finder.Read(&all[0]); all[0].Err == nil || strings.Contains(string(all[0].Text), secret) {
				t.Errorf("%q, %v", all[0].Text, all[0].Err)
			}
		})
	}
}
