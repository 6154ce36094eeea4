// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inbox is a webhook that keeps "status alertname" of each message.
type inbox struct {
	*httptest.Server
	mu   sync.Mutex
	told []string
}

func newInbox(t *testing.T) *inbox {
	in := &inbox{}
	in.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct {
			Status      string
			GroupLabels map[string]string
		}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &m)
		}
		in.mu.Lock()
		defer in.mu.Unlock()
		in.told = append(in.told, fmt.Sprint(m.Status, " ", m.GroupLabels["alertname"]))
		if err != nil {
			in.told = append(in.told, err.Error())
		}
	}))
	t.Cleanup(in.Close)
	return in
}

// count returns how often a message arrived.
func (in *inbox) count(message string) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := 0
	for _, m := range in.told {
		if m == message {
			n++
		}
	}
	return n
}

// smallDisk mounts a file system of a few megabytes in memory.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// fillDisk writes a file until nothing more fits, and returns its name.
func fillDisk(t *testing.T, dir string) string {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "fill"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		err = nil
	}
	return f.Name()
}

// status returns the status of a path.
func status(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url) //nolint:gosec,noctx // a test's own server
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// alwaysHot fires while the room is hot, and at once.
const alwaysHot = `groups:
  - name: rooms
    interval: 200ms
    rules:
      - alert: Hot
        expr: max_over_time(heat[20s]) > 10
        labels: {severity: warning}
`

// The disk becomes full while an alert fires. The process reports this, sends no resolved alert to a receiver, answers
// queries, and stores again when there is space, without a restart.
func TestFullDiskIsReportedAndEndsNoAlert(t *testing.T) {
	t.Parallel()
	rooms, in, dir := newRooms(t), newInbox(t), smallDisk(t, "24m")
	rooms.set(20, "hall")
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte(alwaysHot), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, "server", "--data-dir", filepath.Join(dir, "data"), "--interval", "200ms", "--rules.interval", "200ms",
		"--targets", "127.0.0.1:1", "--scrape", "rooms="+rooms.URL, "--rules.files", rules, "--alerting.webhooks", in.URL)
	base := "http://" + s.addr
	eventually(t, testLimit, "the alert", func() error {
		if in.count("firing Hot") == 0 {
			return fmt.Errorf("told %q", in.told)
		}
		return nil
	})
	time.Sleep(4 * time.Second) // the rule is evaluated, so that only the full disk keeps the alert
	for round := range 2 {
		before := time.Now()
		full := fillDisk(t, dir)
		eventually(t, testLimit, "readiness to fail", func() error {
			code, body := status(t, base+"/-/ready")
			if code != http.StatusServiceUnavailable || !strings.Contains(body, "no space left on device") || !strings.Contains(body, "retention.size") {
				return fmt.Errorf("%d %s", code, body)
			}
			return nil
		})
		eventually(t, testLimit, "the alert of the storage", func() error {
			if n := in.count("firing TeescopeStorageFailing"); n != round+1 {
				return fmt.Errorf("told %d times", n)
			}
			return nil
		})
		eventually(t, testLimit, "the list of targets to say it", func() error {
			_, body := status(t, base+"/api/v1/targets")
			if strings.Count(body, "samples are not stored") < 2 { // rooms, and the server itself
				return fmt.Errorf("%s", body)
			}
			return nil
		})
		// Longer than the rule looks back.
		time.Sleep(25 * time.Second)
		if n := in.count("resolved Hot"); n != 0 {
			t.Fatalf("round %d: %d alerts were resolved because nothing is stored", round, n)
		}
		if code, body := status(t, base+"/-/healthy"); code != http.StatusOK {
			t.Errorf("a full disk is no reason for a restart: %s", body)
		}
		wantExactly(t, "teescope_storage_working", s.scrape(t).sum("teescope_storage_working"), 0)
		if got, err := query(base, "max(count_over_time(heat[1m]))", before); err != nil || len(got) != 1 {
			t.Errorf("a query of what was stored: %v, %v", got, err)
		}
		old := allSamples(t, base, before)
		if err := os.Remove(full); err != nil {
			t.Fatal(err)
		}
		eventually(t, testLimit, "new samples without a restart", func() error {
			if _, err := get(base + "/-/ready"); err != nil {
				return err
			}
			got, err := query(base, "timestamp(heat) > "+fmt.Sprint(before.Unix()+7), time.Now())
			if err == nil && len(got) != 1 {
				err = fmt.Errorf("%v", got)
			}
			return err
		})
		now := allSamples(t, base, before)
		lost := now.missing(old)
		t.Logf("round %d: %d samples before, %d lost", round, old.count(), len(lost))
		if len(lost) > 0 {
			t.Errorf("%d samples are lost, the first is %s", len(lost), lost[0])
		}
		eventually(t, testLimit, "the alert of the storage to end", func() error {
			if n := in.count("resolved TeescopeStorageFailing"); n != round+1 {
				return fmt.Errorf("told %d times", n)
			}
			return nil
		})
	}
	if n := in.count("resolved Hot"); n != 0 {
		t.Errorf("%d alerts were resolved although the room is hot", n)
	}
	rooms.set(1, "hall")
	eventually(t, testLimit, "the alert to end when it is over", func() error {
		if n := in.count("resolved Hot"); n != 1 {
			return fmt.Errorf("told %d times", n)
		}
		return nil
	})
	// What was stored before and after the full disk outlives a restart.
	at := time.Now()
	before := allSamples(t, base, at)
	s.stop(t)
	s = start(t, "server", "--data-dir", filepath.Join(dir, "data"), "--interval", "200ms", "--targets", "127.0.0.1:1")
	if lost := allSamples(t, "http://"+s.addr, at).missing(before); len(lost) > 0 {
		t.Errorf("%d of %d samples are lost after a restart, the first is %s", len(lost), before.count(), lost[0])
	}
}

// limitFiles sets how many files a process may open, if limit is not empty, and returns the limit before. It acts as the
// process's user, because root may lack CAP_SYS_RESOURCE.
func limitFiles(t *testing.T, pid int, limit string) string {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	var owner syscall.Credential
	_, ids, _ := strings.Cut(string(status), "\nUid:")
	_, _ = fmt.Sscan(ids, &owner.Uid)
	_, ids, _ = strings.Cut(ids, "\nGid:")
	_, _ = fmt.Sscan(ids, &owner.Gid)
	args := []string{"--pid", strconv.Itoa(pid), "--noheadings", "--raw", "--output", "SOFT", "--nofile"}
	if limit != "" {
		args = []string{"--pid", strconv.Itoa(pid), "--nofile=" + limit + ":"}
	}
	cmd := exec.Command("prlimit", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &owner}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return strings.TrimSpace(string(out))
}

// The process may open no more files for a while. It continues, says so if samples are lost, and recovers.
func TestNoMoreFilesCanBeOpened(t *testing.T) {
	t.Parallel()
	rooms := newRooms(t)
	rooms.set(20, "hall")
	s := start(t, "server", "--data-dir", t.TempDir(), "--interval", "200ms", "--targets", "127.0.0.1:1", "--scrape", "rooms="+rooms.URL)
	base, pid := "http://"+s.addr, s.cmd.Process.Pid
	eventually(t, testLimit, "the end of the start", func() error { // which needs files, and ends without them
		if !strings.Contains(s.log.String(), "mechanism=seccomp") {
			return errors.New("it is not confined yet")
		}
		return nil
	})
	was := limitFiles(t, pid, "")
	for round := range 3 {
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			t.Fatal(err)
		}
		limitFiles(t, pid, strconv.Itoa(max(4, len(open)-4*round)))
		for range 20 { // new connections find no descriptor
			if c, err := net.DialTimeout("tcp", s.addr, time.Second); err == nil {
				defer c.Close()
			}
			time.Sleep(50 * time.Millisecond)
		}
		select {
		case <-s.done:
			t.Fatalf("round %d: the server has ended: %v\n%s", round, s.err, s.log.String())
		default:
		}
		limitFiles(t, pid, was)
		again := time.Now()
		eventually(t, testLimit, "new samples", func() error {
			if _, err := get(base + "/-/ready"); err != nil {
				return err
			}
			got, err := query(base, fmt.Sprintf("timestamp(heat) > %d", again.Unix()), time.Now())
			if err == nil && len(got) != 1 {
				err = fmt.Errorf("%v", got)
			}
			return err
		})
	}
}

// Files are cut at random places, as after a loss of power, and the server starts each time. What is damaged is named.
func TestTornFilesNeverPreventAStart(t *testing.T) {
	t.Parallel()
	rooms := newRooms(t)
	rooms.set(20, "hall")
	dir := t.TempDir()
	args := []string{"--data-dir", dir, "--interval", "100ms", "--rules.interval", "100ms", "--targets", "127.0.0.1:1", "--scrape", "rooms=" + rooms.URL}
	s := start(t, "server", args...)
	random := rand.New(rand.NewPCG(13, 18))
	for round := range 12 {
		time.Sleep(time.Second)
		if err := s.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = s.ended(t, testLimit)
		name, size, cut := tear(t, dir, random)
		s = start(t, "server", args...)
		t.Logf("round %d: %s of %d bytes was cut at %d", round, name, size, cut)
		eventually(t, testLimit, "samples", func() error {
			got, err := query("http://"+s.addr, "heat", time.Now())
			if err == nil && len(got) == 0 {
				err = fmt.Errorf("none")
			}
			return err
		})
	}
}

// tear cuts one of the files of a data directory.
func tear(t *testing.T, dir string, random *rand.Rand) (name string, size, cut int64) {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.json", "*.json.journal", "tsdb/wal/*", "tsdb/chunks_head/*", "tsdb/wal/checkpoint*/*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
				files = append(files, f)
			}
		}
	}
	name = files[random.IntN(len(files))]
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	cut = random.Int64N(info.Size())
	if err := os.Truncate(name, cut); err != nil {
		t.Fatal(err)
	}
	return name, info.Size(), cut
}

// Another user tries to make root write elsewhere: with a link in the data directory, a directory that every user may
// write, or one that belongs to that user. Nothing is started, nothing elsewhere is changed, and the message names it.
func TestRootRefusesAnUnsafeDataDirectory(t *testing.T) {
	elsewhere := t.TempDir()
	victim := filepath.Join(elsewhere, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, attack := range map[string]func(dir string) error{
		"tsdb/wal is a link":  func(dir string) error { return os.Symlink(elsewhere, filepath.Join(dir, "tsdb", "wal")) },
		"tsdb/lock is a link": func(dir string) error { return os.Symlink(victim, filepath.Join(dir, "tsdb", "lock")) },
		"alerts.json is a link": func(dir string) error {
			return os.Symlink(victim, filepath.Join(dir, "alerts.json"))
		},
		"alerts.json is a pipe": func(dir string) error { return unix.Mkfifo(filepath.Join(dir, "alerts.json"), 0o600) },
		"tsdb/wal/00000000 is a pipe": func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "tsdb", "wal"), 0o750), unix.Mkfifo(filepath.Join(dir, "tsdb", "wal", "00000000"), 0o600))
		},
		"every user may write it":       func(dir string) error { return os.Chmod(dir, 0o777) },
		"every user may write a part":   func(dir string) error { return os.Chmod(filepath.Join(dir, "tsdb"), 0o777) },
		"it is another user's":          func(dir string) error { return os.Chown(dir, 4711, 4711) },
		"every user may write above it": func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) },
		"another user's link leads to it": func(dir string) error {
			moved := filepath.Join(elsewhere, "moved")
			err := errors.Join(os.RemoveAll(moved), os.Rename(dir, moved), os.Symlink(moved, dir))
			return errors.Join(err, os.Lchown(dir, 4711, 4711))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := errors.Join(os.MkdirAll(filepath.Join(dir, "tsdb"), 0o750), attack(dir)); err != nil {
				t.Fatal(err)
			}
			p := background(t, binary, "server", "--listen", freeAddr(t), "--data-dir", dir, "--targets", "127.0.0.1:1")
			if err := p.ended(t, startWithin); err == nil || !strings.Contains(p.log.String(), "data directory "+dir+": ") {
				t.Errorf("%v: %s", err, p.log.String())
			}
			if data, err := os.ReadFile(victim); err != nil || string(data) != "precious" {
				t.Errorf("the file of another place is now %q (%v)", data, err)
			}
		})
	}
}

// A data directory in a directory such as /tmp is used when it belongs to root, and so is one of the service user.
func TestSafeDataDirectoriesAreUsed(t *testing.T) {
	shared := filepath.Join(t.TempDir(), "shared")
	if err := errors.Join(os.Mkdir(shared, 0o777), os.Chmod(shared, 0o777|os.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	args := []string{"--data-dir", filepath.Join(shared, "data"), "--targets", "127.0.0.1:1"}
	for range 2 { // the second start finds what the service user left
		start(t, "server", args...).stop(t)
	}
}
