// SPDX-License-Identifier: Apache-2.0

package privilegetest

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/clock"
	"github.com/teescope/teescope/internal/lib/privilege"
	"github.com/teescope/teescope/internal/lib/proctest"
)

const asChild = "PRIVILEGETEST_CHILD"

// The tests of another process wait until a test has ended, also if the test has called Alone twice.
func TestAnotherProcessWaits(t *testing.T) {
	if os.Getenv(asChild) != "" {
		fmt.Println("begins")
		Alone(t)
		fmt.Println(int64(clock.SinceBoot()))
		return
	}
	if err := privilege.Check("go test"); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestAnotherProcessWaits$")
	cmd.Env = append(os.Environ(), asChild+"=1")
	var child *proctest.Program
	var held time.Duration
	parent := t
	t.Run("holds", func(t *testing.T) {
		Alone(t)
		Alone(t)
		child = proctest.Start(parent, cmd)
		if line, err := child.Out.ReadString('\n'); err != nil || line != "begins\n" {
			t.Fatalf("the other process writes %q, %v", line, err)
		}
		time.Sleep(50 * time.Millisecond) // time in which it would go on
		held = clock.SinceBoot()
	})
	var began int64
	if _, err := fmt.Fscanln(child.Out, &began); err != nil {
		t.Fatal(err)
	}
	if time.Duration(began) < held {
		t.Errorf("the other process went on %v before this test ended", held-time.Duration(began))
	}
	if lock.users != 0 {
		t.Errorf("%d tests have the lock", lock.users)
	}
}
