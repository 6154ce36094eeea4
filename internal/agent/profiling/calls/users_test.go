// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
)

// The kernel takes the lock of each process that maps a file privately without writing, also of one that only reads it.
func TestAProcessThatOnlyReadsAFileIsAsked(t *testing.T) {
	u, id := newUsers(host.Processes{}), hostfs.FileID{Device: 1, Inode: 2}
	u.note(7, host.Program{}, []hostfs.Mapping{{File: id}, {File: id, Executable: true}})
	if of := u.now.of[id]; len(of) != 1 || of[0] != 7 {
		t.Errorf("users are %v, want process 7 once", of)
	}
}

// process is one of a machine: of a user, in a mount namespace whose name is empty if it may not be read.
type process struct {
	pid, user int
	root      string
}

// usersOf returns the users of a machine with processes.
func usersOf(t *testing.T, all ...process) (*users, string) {
	t.Helper()
	proc := t.TempDir()
	for _, one := range all {
		dir := filepath.Join(proc, strconv.Itoa(one.pid))
		hostfstest.Write(t, dir, "status", fmt.Sprintf("Name:\tp\nUid:\t%d\t0\t0\t0\n", one.user))
		started(t, proc, one.pid, 100, 7)
		if one.root != "" {
			if err := errors.Join(os.Mkdir(filepath.Join(dir, "ns"), 0o700), os.Symlink("mnt:["+one.root+"]", filepath.Join(dir, "ns", "mnt"))); err != nil {
				t.Fatal(err)
			}
		}
	}
	reads := reader.New(reader.Options{Proc: hostfs.At(proc), Cgroup: proc, Log: slog.New(slog.DiscardHandler)})
	u := newUsers(host.New(proc, proc, reads))
	u.begin()
	return u, proc
}

// started writes when a process started, and where its stack begins.
func started(t *testing.T, proc string, pid, ticks, stack int) {
	t.Helper()
	stat := fmt.Sprintf("%d (p) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 %d 0 0 0 0 0 %d 0 0\n", pid, ticks, stack)
	hostfstest.Write(t, proc, filepath.Join(strconv.Itoa(pid), "task", strconv.Itoa(pid), "stat"), stat)
}

var shared, private = hostfs.FileID{Device: 1, Inode: 2}, hostfs.FileID{Device: 1, Inode: 3}

// notKnown is the answer of a kernel that does not know which processes map a file.
func notKnown() ([]int, error) { return nil, profiling.ErrNotReported }

// A process that has never answered may map the files of its own mount namespace and tenant, and no others.
func TestAProcessThatDoesNotAnswerConcernsItsOwnFiles(t *testing.T) {
	app := process{pid: 7, user: 1000, root: "1"}
	for name, tt := range map[string]struct {
		stuck  process
		safe   bool
		reason error
	}{
		"in another container":        {process{8, 1001, "2"}, true, reader.ErrStuck},
		"in the same container":       {process{8, 1001, "1"}, false, reader.ErrStuck},
		"of the same user":            {process{8, 1000, "2"}, false, reader.ErrStuck},
		"its files are not known":     {process{8, 1001, ""}, false, reader.ErrStuck},
		"that has ended":              {process{8, 1001, "1"}, true, errors.New("it has ended")},
		"because others answer badly": {process{8, 1001, "2"}, true, reader.ErrExhausted},
	} {
		u, _ := usersOf(t, app, tt.stuck)
		u.note(app.pid, host.Program{Start: time.Second, Stack: 7}, []hostfs.Mapping{{File: shared}})
		u.silent(tt.stuck.pid, tt.reason)
		u.finish()
		err := u.answer(shared, notKnown)
		if tt.safe && err != nil || !tt.safe && (!errors.Is(err, host.ErrUnsafe) || !strings.Contains(err.Error(), "process 8")) {
			t.Errorf("%s: %v", name, err)
		}
		if err := u.answer(private, notKnown); (err != nil) != (len(u.unread) > 0) {
			t.Errorf("%s: the answer for a file without a known process is %v", name, err)
		}
	}
}

// A process that has answered before maps what it mapped then.
func TestAProcessThatAnsweredBeforeConcernsItsFiles(t *testing.T) {
	u, _ := usersOf(t, process{7, 1000, "1"}, process{8, 1000, "1"})
	u.note(7, host.Program{Start: time.Second, Stack: 7}, []hostfs.Mapping{{File: shared}})
	u.note(8, host.Program{Start: time.Second, Stack: 7}, []hostfs.Mapping{{File: private}})
	for range 3 { // also after several scans without an answer
		u.begin()
		u.note(7, host.Program{Start: time.Second, Stack: 7}, []hostfs.Mapping{{File: shared}})
		u.silent(8, reader.ErrStuck)
		u.finish()
		if of := u.now.of[private]; u.answer(shared, notKnown) != nil || len(of) != 1 || of[0] != 8 {
			t.Errorf("the answer is %v, and %v map the private file", u.answer(shared, notKnown), of)
		}
	}
	for what, now := range map[string][2]int{"another process": {200, 7}, "another program": {100, 8}} {
		again, proc := usersOf(t, process{7, 1000, "1"}, process{8, 1000, "1"})
		again.now = u.now
		started(t, proc, 8, now[0], now[1])
		again.begin()
		again.note(7, host.Program{Start: time.Second, Stack: 7}, []hostfs.Mapping{{File: shared}})
		again.silent(8, reader.ErrStuck)
		again.finish()
		if err := again.answer(shared, notKnown); !errors.Is(err, host.ErrUnsafe) {
			t.Errorf("%s that does not answer: %v", what, err)
		}
	}
}

func TestTheMemoryForUsersIsBounded(t *testing.T) {
	u, _ := usersOf(t)
	maps := make([]hostfs.Mapping, maxMapped+1)
	for i := range maps {
		maps[i].File.Inode = uint64(i)
	}
	u.note(7, host.Program{}, maps)
	if len(u.now.of) != maxMapped || u.now.uses != maxMapped || !errors.Is(u.answer(shared, notKnown), host.ErrUnsafe) {
		t.Errorf("%d files with %d users are kept, and the answer is %v", len(u.now.of), u.now.uses, u.answer(shared, notKnown))
	}
	u.begin()
	for pid := range maxUnread + 1 {
		u.silent(pid+1, reader.ErrStuck)
	}
	if len(u.unread) != maxUnread || !errors.Is(u.answer(shared, notKnown), host.ErrUnsafe) {
		t.Errorf("%d processes are kept, and the answer is %v", len(u.unread), u.answer(shared, notKnown))
	}
}

// One tenant leaves files and functions to the next one, and the reason is stated.
func TestTenantsShareFiles(t *testing.T) {
	f := New(Options{})
	add := func(user uint32, inode int) error {
		return f.add(hostfs.FileID{Inode: uint64(inode)}, &file{owner: tenant.Tenant{User: user}})
	}
	n := 0
	var refused error
	for i := range 2 * maxFiles {
		if err := add(1000, i); err == nil {
			n++
		} else {
			refused = err
		}
	}
	if n != maxFiles/2 || !errors.Is(refused, tenant.ErrQuota) {
		t.Errorf("one tenant has %d of %d files, then %v", n, maxFiles, refused)
	}
	if err := add(1001, 1000); err != nil {
		t.Errorf("the next tenant: %v", err)
	}
	f.problem(tenant.Tenant{User: 1000}, "libsgx_urts.so", refused)
	if p := f.Problems(); len(p) != 1 || !strings.Contains(p[0], "the limit is 64 files: its user or control group has reached its quota") {
		t.Errorf("%q", p)
	}
}

// When a tenant has used its time in a scan, its other files wait for the next one, and those of other tenants do not.
func TestATenantDelaysItself(t *testing.T) {
	u, _ := usersOf(t, process{7, 1000, "1"}, process{8, 1000, "1"}, process{9, 1001, "1"})
	f, seen := New(Options{Host: u.host}), map[int]looked{7: {}, 8: {}, 9: {}}
	f.tenantTime = 0
	var probed []int
	f.inTurn([]candidate{{pid: 7}, {pid: 8}, {pid: 9}}, seen, func(c candidate) error {
		probed = append(probed, c.pid)
		for began := time.Now(); time.Since(began) == 0; { // it takes any time
		}
		return nil
	})
	if _, again := seen[8]; !slices.Equal(probed, []int{7, 9}) || again || len(seen) != 2 {
		t.Errorf("files of the processes %v are probed, and %v need not be found again", probed, seen)
	}
}

// Each tenant can have a problem stated, however many others have.
func TestTenantsShareProblems(t *testing.T) {
	f := New(Options{})
	stated := func(user uint32) int {
		for i := range 100 {
			f.problem(tenant.Tenant{User: user}, "libsgx_urts.so", fmt.Errorf("the same of %d", user))
			f.problem(tenant.Tenant{User: user}, strconv.Itoa(i), fmt.Errorf("broken by %d", user))
		}
		return len(f.Problems())
	}
	var got []int
	for _, user := range []uint32{1000, 1001, 1002, 1003, 0} {
		got = append(got, stated(user))
	}
	if !slices.Equal(got, []int{8, 4, 2, 1, 1}) {
		t.Errorf("the tenants have %v problems stated", got)
	}
}
