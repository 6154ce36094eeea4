// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestArchive checks an archive with cpio.
func TestArchive(t *testing.T) {
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "script"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a := newArchive(&out)
	a.Bytes("/etc/odd", 0o640, []byte("12345")) // not a multiple of four
	a.Bytes("etc/odd", 0o640, []byte("again: the first one stays"))
	a.link("/bin/sh", "busybox")
	a.File("/job/script", filepath.Join(host, "script"))
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	cmd := exec.Command("cpio", "-i", "--quiet", "--no-absolute-filenames")
	cmd.Dir, cmd.Stdin = root, &out
	if text, err := cmd.CombinedOutput(); err != nil || len(text) != 0 {
		t.Fatalf("cpio: %v\n%s", err, text)
	}
	for _, f := range []struct {
		name, content string
		mode          os.FileMode
	}{{"etc/odd", "12345", 0o640}, {"job/script", "#!/bin/sh\n", 0o755}} {
		info, err := os.Stat(filepath.Join(root, f.name))
		if err != nil || info.Mode() != f.mode {
			t.Errorf("%s: %v (%v), want mode %v", f.name, info, err, f.mode)
			continue
		}
		if text, _ := os.ReadFile(filepath.Join(root, f.name)); string(text) != f.content {
			t.Errorf("%s holds %q, want %q", f.name, text, f.content)
		}
	}
	if target, err := os.Readlink(filepath.Join(root, "bin/sh")); target != "busybox" {
		t.Errorf("bin/sh points to %q (%v)", target, err)
	}
}

func TestArchiveSaysWhatIsMissing(t *testing.T) {
	a := newArchive(&bytes.Buffer{})
	a.File("/job/nothing", filepath.Join(t.TempDir(), "nothing"))
	a.Bytes("/later", 0o644, nil)
	if err := a.Close(); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("the archive ended with %v", err)
	}
}

// TestTreeBringsLibraries adds a program that is linked dynamically, and asks it for its libraries.
func TestTreeBringsLibraries(t *testing.T) {
	a := newArchive(&bytes.Buffer{})
	if err := a.Tree("/job/ls", "/bin/ls"); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ldd", "/bin/ls").Output()
	if err != nil {
		t.Fatal(err)
	}
	libraries := 0
	for field := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(field, "/") {
			libraries++
			if !a.have[field] {
				t.Errorf("ls came without %s", field)
			}
		}
	}
	if libraries < 2 || !a.have["/job/ls"] {
		t.Errorf("ldd names %d libraries; the archive has %v", libraries, a.have)
	}
}
