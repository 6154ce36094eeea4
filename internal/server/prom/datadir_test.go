// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// Variables with which the test starts itself in another process.
const (
	envScrape = "PROM_TEST_SCRAPE" // scrape into this directory until killed
	envOpen   = "PROM_TEST_OPEN"   // open this directory and print the error
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(envScrape) != "":
		scrapeUntilKilled(os.Getenv(envScrape))
	case os.Getenv(envOpen) != "":
		var log logtest.Log
		s := New(options(os.Getenv(envOpen), &log))
		if err := s.Init(context.Background()); err != nil {
			fmt.Print(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func scrapeUntilKilled(dir string) {
	var log logtest.Log
	o := options(dir, &log)
	o.Interval = 100 * time.Millisecond
	s := New(o)
	if err := s.Init(context.Background()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	go func() {
		e := o.Self.(*exporter)
		for {
			time.Sleep(10 * time.Millisecond)
			e.mu.Lock()
			n := e.n
			e.mu.Unlock()
			if n >= 8 {
				fmt.Println("scraped") // all but the last are stored, and it possibly
				return
			}
		}
	}()
	_ = s.Run(context.Background())
}

// scraping starts a process that scrapes, and returns after its scrapes.
func scraping(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envScrape+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "scraped\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	return cmd
}

// TestKilledDatabaseIsReadable kills a process while it writes, and reads the data.
func TestKilledDatabaseIsReadable(t *testing.T) {
	dir := t.TempDir()
	cmd := scraping(t, dir)
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	var log logtest.Log
	s := New(options(dir, &log))
	if err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown(t.Context())
	if _, times, _ := samples(t, s, "scrapes_total[1h]"); len(times) < 7 {
		t.Errorf("%d samples are left of at least 7", len(times))
	}
	if log.String() != "" {
		t.Errorf("reopening logs:\n%s", log.String())
	}
}

func TestSamplesOutliveARestart(t *testing.T) {
	dir := t.TempDir()
	var log logtest.Log
	o := options(dir, &log)
	o.Interval = 100 * time.Millisecond
	s, stop := start(t, o)
	waittest.Until(t, "samples", func() bool {
		_, times, _ := samples(t, s, "scrapes_total[1h]")
		return len(times) >= 3
	})
	stop()
	again := New(options(dir, &log))
	if err := again.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer again.Shutdown(t.Context())
	if _, times, _ := samples(t, again, "scrapes_total[1h]"); len(times) < 3 {
		t.Errorf("%d samples after a restart, want 3 or more", len(times))
	}
}

func TestDataDirInUse(t *testing.T) {
	dir := t.TempDir()
	cmd := scraping(t, dir)
	var log logtest.Log
	err := New(options(dir, &log)).Init(t.Context())
	var inUse *InUseError
	if !errors.As(err, &inUse) {
		t.Fatalf("Init() = %v, want an InUseError", err)
	}
	if inUse.Holder.PID != cmd.Process.Pid || inUse.Holder.Comm == "" {
		t.Errorf("the holder is %d %q, want %d and a name", inUse.Holder.PID, inUse.Holder.Comm, cmd.Process.Pid)
	}
	if !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("%q does not say what to do", err)
	}
}

// TestDataDirNotWritable runs as another user, because root may write anywhere.
func TestDataDirNotWritable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		err := New(options(dir, &logtest.Log{})).Init(t.Context())
		var nw *NotWritableError
		if !errors.As(err, &nw) || !strings.Contains(err.Error(), "chown") {
			t.Errorf("Init() = %v, want a NotWritableError that says what to do", err)
		}
		return
	}
	for d := dir; d != "/"; d = filepath.Dir(d) { // user nobody must be able to enter
		if st, err := os.Stat(d); err == nil && st.Mode().Perm()&0o055 != 0o055 {
			if err := os.Chmod(d, st.Mode().Perm()|0o055); err != nil {
				t.Fatal(err)
			}
		}
	}
	out := asNobody(t, dir)
	for _, want := range []string{"opening data directory " + dir, "user nobody may not write there", "chown -R nobody " + dir, "--data-dir"} {
		if !strings.Contains(out, want) {
			t.Errorf("message %q lacks %q", out, want)
		}
	}
}

// asNobody opens a directory as the user nobody and returns the error. It copies the binary to a directory where that user
// can run it.
func asNobody(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(filepath.Dir(dir), "prom.test")
	if err := os.WriteFile(bin, self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin)
	cmd.Env, cmd.Dir = []string{envOpen + "=" + dir}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestDamagedLogIsCutAndReported(t *testing.T) {
	dir := t.TempDir()
	cmd := scraping(t, dir)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	segments, err := filepath.Glob(filepath.Join(dir, "tsdb/wal/0*"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("no log: %v, %v", segments, err)
	}
	data, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	written := len(data)
	for written > 0 && data[written-1] == 0 {
		written--
	}
	data[written*3/4] ^= 0xff
	if err := os.WriteFile(segments[0], data, 0o640); err != nil {
		t.Fatal(err)
	}
	var log logtest.Log
	s := New(options(dir, &log))
	if err := s.Init(t.Context()); err != nil {
		t.Fatalf("a damaged log must not keep the program from starting: %v", err)
	}
	defer s.Shutdown(t.Context())
	if !strings.Contains(log.String(), "the write-ahead log was damaged and was truncated there") {
		t.Errorf("the damage is not logged:\n%s", log.String())
	}
	if _, times, _ := samples(t, s, "scrapes_total[1h]"); len(times) == 0 {
		t.Error("samples before the damage are missing")
	}
}

func TestHopelessDatabase(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "tsdb"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tsdb/wal"), []byte("no directory"), 0o640); err != nil {
		t.Fatal(err)
	}
	var log logtest.Log
	err := New(options(dir, &log)).Init(t.Context())
	var open *openError
	if !errors.As(err, &open) || !strings.Contains(err.Error(), "mv "+dir+"/tsdb "+dir+"/tsdb.bad") {
		t.Fatalf("Init() = %v, want an OpenError that says what to move away", err)
	}
	if _, err := lockDataDir(dir); err != nil {
		t.Errorf("the lock is still held after a failed Init: %v", err)
	}
}

// TestFullDisk fills the disk under a running database. The database continues to serve its data and reports why it
// stores no new samples.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: mounting a small file system needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m,mode=0700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	var log logtest.Log
	o := options(dir, &log)
	o.Interval = 100 * time.Millisecond
	s, _ := start(t, o)
	waittest.Until(t, "samples", func() bool {
		_, times, _ := samples(t, s, "scrapes_total[1h]")
		return len(times) >= 2
	})
	fill(t, filepath.Join(dir, "fill"))
	waittest.Until(t, "a line about the full disk", func() bool {
		return strings.Contains(log.String(), "no space left on device")
	})
	if _, times, _ := samples(t, s, "scrapes_total[1h]"); len(times) < 2 {
		t.Errorf("with a full disk %d samples are served, want 2 or more", len(times))
	}
	if err := os.Remove(filepath.Join(dir, "fill")); err != nil {
		t.Fatal(err)
	}
	_, full, _ := samples(t, s, "scrapes_total[1h]")
	waittest.Until(t, "new samples when there is space again", func() bool {
		_, times, _ := samples(t, s, "scrapes_total[1h]")
		return len(times) > len(full)
	})
}

func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 64 << 10; size > 0; size /= 2 {
		for err == nil {
			_, err = f.Write(slices.Repeat([]byte{1}, size))
		}
		err = nil
	}
}

func TestDataDirectoryIsAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := lockDataDir(file)
	if err == nil || !strings.Contains(err.Error(), "not a directory; choose another directory with --data-dir") {
		t.Errorf("lockDataDir(a file) = %v", err)
	}
}
