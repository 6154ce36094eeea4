// SPDX-License-Identifier: Apache-2.0

//go:build sgx

package sgx

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// TestFilesAndPorts copies a host program and a file into the machine, and connects to a port on the guest's loopback.
// It copies files, a folder, the output and the exit status back. The machine has the requested processors, memory,
// command line and environment.
func TestFilesAndPorts(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in.txt"), []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	cmd := exec.Command("../../testbed/run", "-sgx=false", "-timeout", "10m", "-cpus", "3", "-mem", "600", "-append", "teescope.test=1", "-env", "GREETING=hello there", "-port", fmt.Sprintf("%d:8080", port),
		"-in", filepath.Join(dir, "in.txt"), "-in", "/bin/sed", "-out", "out.txt", "-out", "heard.txt", "-out", "more", "-out", "machine.txt", "-to", dir, "--",
		"sh", "-c", `/job/sed s/hello/bye/ in.txt >out.txt
			mkdir -p more/deep; uname -r >more/deep/release
			{ nproc; sed -n 's/MemTotal: *//p' /proc/meminfo; cat /proc/cmdline; echo "$GREETING"; } >machine.txt
			nc -l -p 8080 <in.txt >heard.txt
			echo told >&2; echo said; exit 42`)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	heard := speak(port)
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 42 {
		t.Errorf("the run ended with %v, want status 42", err)
	}
	if stdout.String() != "said\n" || stderr.String() != "told\n" {
		t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
	}
	if heard != "hello\n" {
		t.Errorf("the guest's port said %q", heard)
	}
	for file, want := range map[string]string{
		"out.txt": `^bye\n$`, "heard.txt": `^from the host\n$`, "more/deep/release": `^6\.12\.\d+`,
		"machine.txt": `^3\n5\d{5} kB\n.* teescope\.test=1\nhello there\n$`, // the kernel uses a part of 600 MiB
	} {
		if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !regexp.MustCompile(want).Match(got) {
			t.Errorf("%s is %q (%v), want %s", file, got, err, want)
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// speak retries until the guest answers, and returns the answer.
func speak(port int) string {
	for until := time.Now().Add(90 * time.Second); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_, _ = c.Write([]byte("from the host\n"))
		// The guest's nc ends when this side is closed, even if it has not sent its answer yet.
		answer, _ := bufio.NewReader(c).ReadString('\n')
		c.Close()
		if answer != "" {
			return answer
		}
	}
	return ""
}
