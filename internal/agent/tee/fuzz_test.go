// SPDX-License-Identifier: Apache-2.0

package tee

import (
	"bytes"
	"github.com/teescope/teescope/internal/lib/teelabel"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var runtimes = []teelabel.Runtime{"", "gramine-sgx", "gramine-direct", "scone", "occlum", "ego", "openenclave", "sgx-sdk", "fortanix-edp", "sgx-lkl", "graphene-sgx"}

// FuzzProcess varies the files of /proc/PID, because the owner of a process controls their content.
func FuzzProcess(f *testing.F) {
	rest := " S 1" + strings.Repeat(" 0", 17) + " 4711 0\n"
	f.Add([]byte("7 (a) b)"+rest), []byte(enclaveMap+mapOf("/bin/a b (deleted)")), "/usr/lib/gramine/sgx/loader", args("a", "b", "init"), "/dev/null")
	f.Add([]byte("7 (sh) S"), []byte(mapOf(libs+"libsgx_urts.so.2", "/dev/isgx (deleted)")), "/opt/ego/bin/ego-host", args("a", "/x/ego-enclave:b"), "/dev/sgx_enclave")
	f.Add([]byte("7 ()"), []byte("0-1 r-xp 0 00:06 1 /lib/c\\012d"), "ld-scone-x", args("/x/sgx/libpal.so", "/y/direct/libpal.so", "child"), "/dev/sgx/enclave (deleted)")
	for _, cmdline := range []string{
		args("x", "/x/sgx/libpal.so", "init"), args("x", "/x/direct/libpal.so", "child"), args("/x/ld-scone-x", "y"), args("x", "/x/ego-enclave:y"),
	} {
		f.Add([]byte{}, []byte{}, "/usr/bin/x", cmdline, "")
	}

	root := f.TempDir()
	for _, dir := range []string{"proc/7/task/7", "proc/7/fd", "dev"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			f.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "dev/sgx_enclave"), nil, 0o644); err != nil {
		f.Fatal(err)
	}
	r := Roots{Proc: filepath.Join(root, "proc"), Dev: filepath.Join(root, "dev"), Sys: filepath.Join(root, "sys")}
	f.Fuzz(func(t *testing.T, stat, maps []byte, exe, cmdline, fd string) {
		for name, data := range map[string][]byte{"task/7/stat": stat, "maps": maps, "cmdline": []byte(cmdline)} {
			if err := os.WriteFile(r.of(7).Path(name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for name, target := range map[string]string{"exe": exe, "fd/3": fd} {
			_ = os.Remove(r.of(7).Path(name))
			_ = os.Symlink(target, r.of(7).Path(name)) // a name that no link can have
		}
		checkLook(t, r.look(7).finding, maps, fd)
		kind, runtime := NewDetector(r, nil).Workload([]uint32{7})
		if !slices.Contains([]teelabel.Kind{teelabel.None, teelabel.SGX}, kind) || !slices.Contains(runtimes, runtime) {
			t.Errorf("the process runs in %q under %q", kind, runtime)
		}
		if p, ok := r.process(7); ok && !bytes.Contains(stat, []byte("("+p.comm+")")) {
			t.Errorf("%q is not in %q", p.comm, stat)
		}
	})
}

// checkLook checks that a process has an enclave only if it has a mapping or an open file of one.
func checkLook(t *testing.T, found finding, maps []byte, fd string) {
	t.Helper()
	mapped := slices.ContainsFunc(sgxNodes, func(node string) bool { return bytes.Contains(maps, []byte(" /dev/"+node)) })
	if found.enclave && !mapped && !IsEnclaveDevice(fd) {
		t.Errorf("an enclave in %q and %q", maps, fd)
	}
	if IsEnclaveDevice(fd) && !found.enclave {
		t.Errorf("%q is open, but there is no enclave", fd)
	}
	if !slices.Contains(runtimes, found.runtime) {
		t.Errorf("%q is no value of the label runtime", found.runtime)
	}
}
