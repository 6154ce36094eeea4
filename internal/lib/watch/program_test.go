// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// The arguments are those of Gramine's scripts (tools/gramine-sgx.in, tools/gramine-direct.in) and of its clone of a
// process (pal/src/host/linux-sgx/host_process.c).
func TestProgram(t *testing.T) {
	long := strings.Repeat("a", maxPath)
	proc := t.TempDir()
	write := func(pid, parent int, comm string, args ...string) {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		stat := strconv.Itoa(pid) + " (" + comm + ") S " + strconv.Itoa(parent) + strings.Repeat(" 0", 48) + "\n"
		for name, data := range map[string]string{"comm": comm + "\n", "stat": stat, "cmdline": strings.Join(append(args, ""), "\x00")} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	const sgx, direct = "/usr/lib/x86_64-linux-gnu/gramine/sgx/", "/usr/lib/x86_64-linux-gnu/gramine/direct/"
	for i, tt := range []struct {
		what string
		comm string
		args []string
		want string
	}{
		{"a program", "redis-server", []string{"redis-server", "*:6379"}, "redis-server"},
		{"gramine-sgx", "loader", []string{sgx + "loader", sgx + "libpal.so", "init", "redis-server", "--save", ""}, "redis-server"},
		{"gramine-direct", "exe", []string{direct + "loader", direct + "libpal.so", "init", "./python3.11"}, "python3.11"},
		{"a manifest in a directory", "loader", []string{sgx + "loader", sgx + "libpal.so", "init", "/opt/apps/nginx"}, "nginx"},
		{"a name longer than a comm", "loader", []string{sgx + "loader", sgx + "libpal.so", "init", "a/name-of-twenty-bytes"}, "name-of-twenty-"},
		{"another program named loader", "loader", []string{"loader", "--init", "x", "y"}, "loader"},
		{"a container's init named exe", "exe", []string{"/proc/self/exe", "init"}, "exe"},
		{"an application without a name", "loader", []string{"l", sgx + "libpal.so", "init", "apps/"}, "loader"},
		{"a library without a directory", "loader", []string{"l", "libpal.so", "init", "x"}, "loader"},
		{"no arguments", "loader", nil, "loader"},
		{"arguments that are too long", "loader", []string{"l", sgx + "libpal.so", "init", "/" + long}, "loader"},
	} {
		write(100+i, 1, tt.comm, tt.args...)
		if got, err := Program(hostfs.At(proc), nil, 100+i); got != tt.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", tt.what, got, err, tt.want)
		}
	}
	write(200, 101, "loader", sgx+"loader", sgx+"libpal.so", "child", "5")
	write(201, 200, "loader", sgx+"loader", sgx+"libpal.so", "child", "7")
	write(202, 202, "loader", sgx+"loader", sgx+"libpal.so", "child", "7")
	for pid, want := range map[int]string{200: "redis-server", 201: "redis-server", 202: "loader"} {
		if got, err := Program(hostfs.At(proc), nil, pid); got != want || err != nil {
			t.Errorf("process %d: %q, %v; want %q", pid, got, err, want)
		}
	}
	if name, err := Program(hostfs.At(proc), nil, 300); err == nil {
		t.Errorf("a process that does not exist is %q", name)
	}
}
