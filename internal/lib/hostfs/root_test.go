// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
)

func TestRead(t *testing.T) {
	const most = 5000
	dir := t.TempDir()
	root := At(dir)
	d, err := root.OpenDir()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, size := range []int{0, 1, 511, 512, 513, most - 1, most, most + 1, 3 * firstRead} {
		name := strconv.Itoa(size)
		hostfstest.Write(t, dir, name, strings.Repeat("x", size))
		if data, err := root.Read(most, name); err != nil || data == nil || len(data) != min(size, most) {
			t.Errorf("of %d bytes %d are read, %v", size, len(data), err)
		}
		if data, err := root.Read(1<<20, name); err != nil || len(data) != size {
			t.Errorf("of all %d bytes %d are read, %v", size, len(data), err)
		}
		if data, err := root.ReadWhole(most, name); errors.Is(err, errTooLong) != (size > most) || err == nil && len(data) != size {
			t.Errorf("of %d bytes %d are read as a whole, %v", size, len(data), err)
		}
		if data, err := d.Read(most, name); err != nil || len(data) != min(size, most) {
			t.Errorf("of %d bytes in the directory %d are read, %v", size, len(data), err)
		}
		if data, err := d.Append([]byte("ab"), most, name); err != nil || len(data) != min(size+2, most) || string(data[:2]) != "ab" {
			t.Errorf("of %d bytes in the directory %d are appended, %v", size, len(data)-2, err)
		}
	}
	if _, err := root.Read(most, "none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	if _, err := root.Read(most); !errors.Is(err, unix.EISDIR) {
		t.Errorf("of a directory: %v", err)
	}
}

func TestNumber(t *testing.T) {
	dir := t.TempDir()
	root := At(dir)
	for text, want := range map[string]uint64{"0\n": 0, "4194304\n": 4194304, "7": 7, "18446744073709551615\n": 1<<64 - 1} {
		hostfstest.Write(t, dir, "f", text)
		if n, err := root.Number("f"); err != nil || n != want {
			t.Errorf("%q is %d, %v; want %d", text, n, err, want)
		}
	}
	for _, text := range []string{"", "max\n", "-1\n", "1 2\n", "18446744073709551616\n", "0x10\n", "1.5\n"} {
		hostfstest.Write(t, dir, "f", text)
		if n, err := root.Number("f"); err == nil || !strings.Contains(err.Error(), root.Path("f")) {
			t.Errorf("%q is %d, %v", text, n, err)
		}
	}
	hostfstest.Write(t, dir, "f", strings.Repeat("0", 64)+"1")
	if n, err := root.Number("f"); !errors.Is(err, errTooLong) {
		t.Errorf("a long file is %d, %v", n, err)
	}
	if _, err := root.Number("none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}

func TestReadLines(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{"a\nbc\n": "a\nbc\n", "a\nbc\nd": "a\nbc\n", "a\nbcdef\n": "a\n", "abcdefgh": "", "abcde": "abcde", "": ""} {
		hostfstest.Write(t, dir, "f", text)
		if data, err := At(dir).ReadLines(5, "f"); err != nil || string(data) != want {
			t.Errorf("the lines of %q are %q, %v; want %q", text, data, err, want)
		}
	}
}

func TestWholeLines(t *testing.T) {
	for text, want := range map[string]string{"a\nb": "a\n", "a\n": "a\n", "a": "", "": ""} {
		if got := string(WholeLines([]byte(text+"z"), len(text))); got != want {
			t.Errorf("the lines within %q are %q, want %q", text, got, want)
		}
	}
}

// Other users can put another kind of file instead of the expected one.
func TestOtherKindsOfFiles(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := At(dir).Read(10, "fifo"); len(data) > 0 {
		t.Errorf("a FIFO holds %q, %v", data, err)
	}
	if data, err := At("/dev").Read(10, "zero"); err != nil || !bytes.Equal(data, make([]byte, 10)) {
		t.Errorf("of an endless file %q is read, %v", data, err)
	}
	hostfstest.Write(t, dir, "file", "x")
	if err := os.Symlink("file", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	d, err := At(dir).OpenDir()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Read(10, "link"); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a link is followed: %v", err)
	}
}

func TestIDs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"100", "7", "self", "+8", "-9", "99999999999", "1x"} {
		hostfstest.Write(t, dir, name+"/comm", "x")
		hostfstest.Write(t, dir, "7/task/"+name+"/comm", "x")
	}
	if pids, err := At(dir).Processes(); err != nil || !slices.Equal(pids, []int{7, 100}) {
		t.Errorf("the processes are %v, %v", pids, err)
	}
	if tids, err := At(dir).Process(7).Threads(0); err != nil || !slices.Equal(tids, []int{7, 100}) {
		t.Errorf("the threads are %v, %v", tids, err)
	}
	if tids, err := At(dir).Process(7).Threads(1); err != nil || len(tids) > 1 {
		t.Errorf("of the first name, the threads are %v, %v", tids, err)
	}
	if _, err := At(dir).Process(8).Threads(0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the threads of no process: %v", err)
	}
	if names, err := At(dir).Names(2); err != nil || len(names) != 2 {
		t.Errorf("%q are listed, %v", names, err)
	}
}

// TestThisProcess compares the real /proc with what this process knows about itself.
func TestThisProcess(t *testing.T) {
	proc := At("/proc")
	self := proc.Process(os.Getpid())
	if pids, err := proc.Processes(); err != nil || !slices.Contains(pids, os.Getpid()) {
		t.Errorf("this process is not listed: %v", err)
	}
	if tids, err := self.Threads(0); err != nil || !slices.Contains(tids, os.Getpid()) {
		t.Errorf("its first thread is not listed: %v", err)
	}
	s, err := self.Thread(os.Getpid()).Stat()
	if err != nil || s.Ended() || s.Started <= 0 {
		t.Errorf("its stat is %+v, %v", s, err)
	}
	boot, err := proc.BootTime()
	if began := time.Unix(int64(boot), 0).Add(s.Started); err != nil || time.Since(began) < -2*time.Second || time.Since(began) > time.Hour {
		t.Errorf("it began %v, %v", began, err)
	}
	if comm, err := self.Comm(); err != nil || comm != s.Comm || comm != "hostfs.test" {
		t.Errorf("its name is %q and %q, %v", comm, s.Comm, err)
	}
	if args, err := self.Args(1); err != nil || !slices.Equal(args, os.Args[:1]) {
		t.Errorf("its arguments are %q, %v", args, err)
	}
	path, err := self.Executable()
	if want, _ := os.Executable(); err != nil || Undeleted(path) != want {
		t.Errorf("it runs %q, %v", path, err)
	}
	var info unix.Stat_t
	if err := unix.Stat(path, &info); err != nil {
		t.Fatal(err)
	}
	if file, err := self.ExecutableFile(); err != nil || file.Inode != info.Ino || file.Device != info.Dev || file.Size != info.Size {
		t.Errorf("it runs the file %+v, %v", file, err)
	}
	runs, vdso := false, false
	if err := proc.Self().Mappings(func(m Mapping) {
		runs = runs || m.IsFile() && m.Executable && string(m.Path) == path && m.Start < m.End
		vdso = vdso || string(m.Path) == "[vdso]"
	}); err != nil || !runs || !vdso {
		t.Errorf("its program is mapped: %v, the vDSO: %v, %v", runs, vdso, err)
	}
	if _, err := self.Cgroup(""); err != nil {
		t.Errorf("its control group: %v", err)
	}
	if _, _, ok := self.Switches(); !ok {
		t.Error("its context switches are not known")
	}
}

func TestHasOpen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	isSocket := func(target string) bool { return strings.HasPrefix(target, "socket:[") }
	if !At("/proc").Self().HasOpen(0, isSocket) {
		t.Error("the socket is not found")
	}
	if At(t.TempDir()).Self().HasOpen(0, isSocket) {
		t.Error("a socket without a process")
	}
}

func BenchmarkRead(b *testing.B) {
	root := At("/proc")
	for b.Loop() {
		if _, err := root.Read(maxSmall, "self/stat"); err != nil {
			b.Fatal(err)
		}
	}
}

// A child in a PID namespace of its own sees that it is not the host's. The kernel names the namespace; this process must be
// in the first one, which has the same name on every machine.
func TestSeesAllProcesses(t *testing.T) {
	if os.Getenv("HOSTFS_CHILD") != "" {
		all, name := At("/proc").SeesAllProcesses()
		fmt.Println("child:", all, name)
		return
	}
	first, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Skip("no PID namespaces: ", err)
	}
	if all, name := At("/proc").SeesAllProcesses(); name != first || all != (first == initialPIDs) {
		t.Errorf("SeesAllProcesses() = %v, %q", all, name)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestSeesAllProcesses$")
	cmd.Env = append(os.Environ(), "HOSTFS_CHILD=1")
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) {
		t.Skip("not root: ", err)
	}
	// /proc is still the one of this namespace, where "self" is the child.
	if err != nil || !strings.Contains(string(out), "child: false pid:[") || strings.Contains(string(out), first) {
		t.Errorf("%v\n%s", err, out)
	}
}

// In a container the machine's files are below the root of the first process, if that may be read.
func TestMachineRoot(t *testing.T) {
	proc, other := t.TempDir(), t.TempDir()
	if got, err := At(proc).MachineRoot(); got != "/" || err != nil {
		t.Errorf("without the first process: %q (%v)", got, err)
	}
	link := filepath.Join(proc, "1", "root")
	if err := os.Mkdir(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{"/": "/", other: link, "/nonexistent": "/"} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		if got, err := At(proc).MachineRoot(); got != want || err != nil {
			t.Errorf("the root of the first process is %s: %q (%v), want %q", target, got, err, want)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
}

// A container that may not read the root of the first process must not take its own files for those of the machine. The kernel shows
// what is mounted there to everyone (proc_pid_mountinfo(5)).
func TestMachineRootIsHidden(t *testing.T) {
	const (
		host      = "22 28 0:21 / /proc rw - proc proc rw\n28 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n29 28 254:2 / /mnt rw - ext4 /dev/vdb rw\n"
		hostAgain = "901 900 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n" // in a mount namespace of its own, as with PrivateTmp=
		overlay   = "610 520 0:57 / / ro,relatime - overlay overlay ro,lowerdir=/a,upperdir=/b\n611 610 0:60 / /proc rw - proc proc rw\n"
		directory = "610 520 254:1 /containers/1/rootfs / ro - ext4 /dev/vda1 rw\n"
		covered   = "1 1 0:2 / / rw - rootfs rootfs rw\n" + host
	)
	for name, c := range map[string]struct {
		first, own string
		hidden     bool
	}{
		"the same":                 {host, host, false},
		"another mount namespace":  {host, hostAgain, false},
		"a container":              {host, overlay, true},
		"a directory of the disk":  {host, directory, true},
		"a mount over the first":   {covered, hostAgain, false},
		"the first is not known":   {"", overlay, false},
		"the own is not known":     {host, "garbage\n1 2 3 4\n", false},
		"both without a root":      {"611 610 0:60 / /proc rw - proc proc rw\n", "\n", false},
		"containers of one image":  {overlay, strings.Replace(overlay, "0:57", "0:58", 1), true},
		"the own root is in a tmp": {host, "1 1 0:30 / / rw - tmpfs tmpfs rw", true},
	} {
		proc := t.TempDir()
		for dir, text := range map[string]string{"1": c.first, "self": c.own} {
			if err := os.Mkdir(filepath.Join(proc, dir), 0o755); err != nil {
				t.Fatal(err)
			}
			if text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(proc, dir, "mountinfo"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		// Root may read everything, so a link into nothing stands for the refusal.
		if err := os.Symlink("/nonexistent", filepath.Join(proc, "1", "root")); err != nil {
			t.Fatal(err)
		}
		want := "/"
		if c.hidden {
			want = filepath.Join(proc, "1", "root")
		}
		if got, err := At(proc).MachineRoot(); got != want || (err != nil) != c.hidden {
			t.Errorf("%s: %q (%v), want %q", name, got, err, want)
		}
	}
}
