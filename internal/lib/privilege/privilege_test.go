// SPDX-License-Identifier: Apache-2.0

package privilege

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"
)

// The tests change the privileges of their process, so each runs in its own process.
func inChild(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if os.Getenv("PRIVILEGE_CHILD") == t.Name() {
		f(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", pattern(t.Name()), "-test.v")
	cmd.Env = append(os.Environ(), "PRIVILEGE_CHILD="+t.Name(), "PRIVILEGE_DIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// directory creates a directory for a test in a child. The parent removes it, because the child may be unable to.
func directory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(os.Getenv("PRIVILEGE_DIR"), "")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// pattern selects one test. Each level of its name is a separate pattern.
func pattern(name string) string {
	levels := strings.Split(regexp.QuoteMeta(name), "/")
	return "^" + strings.Join(levels, "$/^") + "$"
}

func TestCheckNamesWhatIsMissing(t *testing.T) {
	inChild(t, func(t *testing.T) {
		if err := cap.NewSet().SetProc(); err != nil {
			t.Fatal(err)
		}
		err := Check("bin/teescope")
		var missing *MissingError
		if !errors.As(err, &missing) {
			t.Fatalf("Check() = %v, want a MissingError", err)
		}
		for _, want := range []string{"CAP_BPF and CAP_PERFMON", "sudo bin/teescope", "setcap cap_bpf,cap_perfmon"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
	})
}

func TestDropLeavesOnlyWhatIsKept(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: there is nothing to drop")
	}
	inChild(t, func(t *testing.T) {
		if err := Check("x"); err != nil {
			t.Fatalf("Check() as root = %v", err)
		}
		names, err := Drop(Agent, "cap_perfmon")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(names, "cap_perfmon") {
			t.Errorf("%v are left: cap_perfmon was to be kept", names)
		}
		have := cap.GetProc()
		for v := cap.Value(0); v <= cap.CHECKPOINT_RESTORE; v++ {
			ok, err := have.GetFlag(cap.Permitted, v)
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.Contains(strings.Join(names, " "), v.String()) && v != cap.SYS_ADMIN; ok != want {
				t.Errorf("%s permitted: %v, want %v", v, ok, want)
			}
		}
		if n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || n != 1 {
			t.Errorf("no_new_privs = %d, %v", n, err)
		}
	})
}

func TestHeld(t *testing.T) {
	inChild(t, func(t *testing.T) {
		all := cap.GetProc()
		root, err := all.GetFlag(cap.Effective, cap.BPF)
		if err != nil {
			t.Fatal(err)
		}
		if Held("CAP_BPF") != root || Held("cap_none") {
			t.Errorf("Held: CAP_BPF %v (want %v), an unknown one %v", Held("CAP_BPF"), root, Held("cap_none"))
		}
		if err := cap.NewSet().SetProc(); err != nil {
			t.Fatal(err)
		}
		if Held("CAP_BPF") {
			t.Error("held after it was dropped")
		}
	})
}
