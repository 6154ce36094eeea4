// SPDX-License-Identifier: Apache-2.0

package inputfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRead reads files of all kinds. The reading of the named pipe would never return if the open waited for a writer.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	pipe, full, large, linked := filepath.Join(dir, "pipe"), filepath.Join(dir, "full"), filepath.Join(dir, "large"), filepath.Join(dir, "linked")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int{full: 1024, large: 1025} {
		if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(pipe, linked); err != nil {
		t.Fatal(err)
	}
	huge := filepath.Join(dir, "huge")
	if err := errors.Join(os.WriteFile(huge, nil, 0o600), os.Truncate(huge, maxByName+1)); err != nil {
		t.Fatal(err)
	}
	if err := Check(huge); err == nil || !strings.Contains(err.Error(), huge+": it is larger than 16 MiB") {
		t.Errorf("Check of a huge file: %v", err)
	}
	for _, c := range []struct {
		name, want string
		kind       bool
	}{
		{full, "", false},
		{"/dev/null", "", false},
		{large, "it is larger than 1 KiB, the limit for this file", false},
		{pipe, "it is a named pipe, not a regular file", true},
		{linked, "it is a named pipe, not a regular file", true},
		{"/dev/zero", "it is a device, not a regular file", true},
		{dir, "is a directory", false},
		{filepath.Join(dir, "missing"), "no such file or directory", false},
	} {
		_, err := Read(c.name, 1024)
		var with *fs.PathError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (!errors.As(err, &with) || with.Path != c.name || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		if err := Check("", c.name); errors.Is(err, errKind) != c.kind || err != nil != c.kind {
			t.Errorf("Check of %s: %v", c.name, err)
		}
	}
}

// TestPipeOfShell reads what <(command) names: a pipe without a name that this process holds. A read waits for its writer.
func TestPipeOfShell(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = w.WriteString("some")
		_ = w.Close()
	}()
	got, err := Read(fmt.Sprintf("/proc/self/fd/%d", r.Fd()), 1024)
	if err != nil || string(got) != "some" {
		t.Errorf("%q, %v", got, err)
	}
}
