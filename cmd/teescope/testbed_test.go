// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/proctest"
)

// fakeTestbed makes a source tree whose machine writes its arguments into the run file and ends with a status.
func fakeTestbed(t *testing.T, status string) string {
	t.Helper()
	dir := t.TempDir()
	script := `#!/bin/sh
to=
for last; do
	[ "$to" = next ] && to=$last
	[ "$last" = -to ] && to=next
	[ "$last" = -- ] && break
done
printf '<%s>\n' "$@" >"$to/recorded.tsrun"
exit ` + status + "\n"
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "testbed"), 0o755), os.WriteFile(filepath.Join(dir, "testbed", "run"), []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The recorder in the machine gets the flags that do not concern the machine. The agent gets each rule as one word. The file is
// written to the path that the user gave. No file is replaced, and no temporary file stays.
func TestRecordInTestbed(t *testing.T) {
	dir := t.TempDir()
	file, app := filepath.Join(dir, "a.tsrun"), filepath.Join(dir, "app")
	if err := os.WriteFile(app, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"record", "--in-testbed", "--source", fakeTestbed(t, "3"), "--in", "/etc/hosts:/etc/hosts", "-o", file, "--repeat", "2", "--watch", "comm=it's",
		"--label", "a=b,c", "--outcome", `n=x ([0-9,]+)`, "--counters=false", "--", app, "-n", "--repeat",
	}
	_, errs, err := execute(t, args...)
	var status *statusError
	if !errors.As(err, &status) || status.status != 3 {
		t.Fatalf("%v, want the status 3 of the machine: %s", err, errs)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for _, want := range []string{
		"<-in>\n<" + app + ">\n", "<-in>\n</etc/hosts:/etc/hosts>\n", `--watch 'comm=app' --watch 'comm=it'\''s'`, "<--repeat=2>\n", "<--label=a=b,c>\n",
		"<--outcome=n=x ([0-9,]+)>\n", "<--counters=false>\n", "<--watch=comm=it's>\n", "<-->\n<app>\n<-n>\n<--repeat>\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the machine did not get %q:\n%s", want, got)
		}
	}
	for _, no := range []string{"in-testbed", "<--source", "<--output", "<--in="} {
		if strings.Contains(got, no) {
			t.Errorf("the machine got %q:\n%s", no, got)
		}
	}
	if _, _, err := execute(t, args...); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("the file was replaced: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// The name of a program can be longer than the kernel's name of its processes, and can look like a regular expression.
func TestTestbedWatchesAnyName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.tsrun")
	if _, errs, err := execute(t, "record", "--in-testbed", "--source", fakeTestbed(t, "0"), "-o", file, "--", "my(g++)-test's-program"); err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	text, err := os.ReadFile(file)
	if want := `--watch 'comm=my\(g\+\+\)-test'\''s-' `; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("the agent does not get %s: %v\n%s", want, err, text)
	}
}

func TestWrongRecordInTestbed(t *testing.T) {
	for want, args := range map[string]string{
		"add --in-testbed":   "--in file -- app",
		"counts and times":   "--in-testbed --syscalls.time -- app",
		"one command":        "--in-testbed --for 5s --all",
		"leave out --matrix": "--in-testbed -o sweep --matrix a=1,2 -- app {a}",
		"was not found":      "--in-testbed --source " + t.TempDir() + " -o " + t.TempDir() + "/a -- app",
		"without a run file": "--in-testbed --source " + withoutFile(t) + " -o " + t.TempDir() + "/a -- app",
		"making a directory": "--in-testbed --source " + withoutFile(t) + " -o " + t.TempDir() + "/none/a -- app",
	} {
		_, _, err := execute(t, append([]string{"record"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// withoutFile makes a source tree whose machine fails.
func withoutFile(t *testing.T) string {
	t.Helper()
	dir := fakeTestbed(t, "0")
	if err := os.WriteFile(filepath.Join(dir, "testbed", "run"), []byte("#!/bin/sh\nexit 125\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The demonstrations boot the machine with the parts that each needs, and report why the machine ended.
func TestDemosBootTheirMachines(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\nprintf '<%s>\\n' \"$@\"\nexit 3\n"
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "testbed"), 0o755), os.WriteFile(filepath.Join(dir, "testbed", "run"), []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	for demo, want := range map[string][]string{
		"sgx": {"<-epc>\n<32>\n", "<-port>\n<" + port + ":9750>\n", "paging -mib 64"},
		"cvm": {"<-sgx=false>\n<-kvm>\n<-disk>\n<32>\n<-append>\n<swiotlb=512,force>\n", "<-kernel>\n<6.1>\n", "guest=storm storm", "<-port>\n<" + port + ":9750>\n"},
	} {
		out, _, err := execute(t, "demo", demo, "--no-browser", "--kernel", "6.1", "--source", dir, "--listen", "127.0.0.1:"+port)
		if err == nil || !strings.Contains(err.Error(), "running the virtual machine: exit status 3") {
			t.Errorf("%s: %v", demo, err)
		}
		for _, text := range want {
			if !strings.Contains(out, text) {
				t.Errorf("the machine of %s did not get %q:\n%s", demo, text, out)
			}
		}
	}
}

// freePort returns a free port of this machine.
func freePort(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(proctest.FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}
