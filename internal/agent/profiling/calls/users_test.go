// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"errors"
	"strconv"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

// The kernel takes the lock of each process that maps a file privately without writing, also of one that only reads it.
func TestAProcessThatOnlyReadsAFileIsAsked(t *testing.T) {
	f, id := New(Options{}), hostfs.FileID{Device: 1, Inode: 2}
	f.users = map[hostfs.FileID][]int{}
	f.note(7, []hostfs.Mapping{{File: id}, {File: id, Executable: true}})
	if users := f.users[id]; len(users) != 1 || users[0] != 7 {
		t.Errorf("users are %v, want process 7 once", users)
	}
}

func TestNoProbeIsSetWhileAProcessDoesNotAnswer(t *testing.T) {
	f := New(Options{})
	f.silent(errors.New("it has ended"))
	if err := f.answer(&file{}); err != nil {
		t.Errorf("an ended process prevents probes: %v", err)
	}
	f.silent(reader.ErrStuck)
	if err := f.answer(&file{}); !errors.Is(err, errUnsafe) {
		t.Errorf("the error is %v, want errUnsafe", err)
	}
}

func TestTheMemoryForUsersIsBounded(t *testing.T) {
	f := New(Options{})
	f.users = map[hostfs.FileID][]int{}
	maps := make([]hostfs.Mapping, maxMapped+1)
	for i := range maps {
		maps[i].File.Inode = uint64(i)
	}
	f.note(7, maps)
	if len(f.users) != maxMapped || f.uses != maxMapped || !errors.Is(f.answer(&file{}), errUnsafe) {
		t.Errorf("%d files with %d users are kept, and the answer is %v", len(f.users), f.uses, f.answer(&file{}))
	}
}

func TestProblemsAreFew(t *testing.T) {
	f, stated := New(Options{}), 0
	for i := range 100 {
		f.problem("libsgx_urts.so", errors.New("same"))
		f.problem(strconv.Itoa(i), errors.New("broken"))
		stated += len(f.Problems())
	}
	if stated != 16 {
		t.Errorf("%d problems are stated, want 16", stated)
	}
}
