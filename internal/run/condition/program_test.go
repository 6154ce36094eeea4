// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/proctest"
)

func TestProgram(t *testing.T) {
	sh, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	got := values(Read(Host{}, Subject{Path: sh}))
	out, err := exec.Command("sha256sum", sh).Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Fields(string(out))[0]; got["program_sha256"] != want || got["program"] != filepath.Base(sh) {
		t.Errorf("%v, sha256sum says %s", got, want)
	}
	out, err = exec.Command("readelf", "-n", sh).Output()
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`Build ID: ([0-9a-f]+)`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("readelf shows no build ID: %s", out)
	}
	if got["program_build_id"] != string(m[1]) {
		t.Errorf("build ID %q, readelf says %s", got["program_build_id"], m[1])
	}
	if _, isGo := got["program_go"]; isGo {
		t.Errorf("the shell is a Go program: %v", got)
	}
}

// The libraries of a process that runs have the build IDs that readelf shows.
func TestLibraries(t *testing.T) {
	p := proctest.Start(t, exec.Command("sh", "-c", "echo ready; read line"))
	if _, err := p.Out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	s, err := OfProcess(ThisHost(), p.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ldd", s.Path).Output()
	file := regexp.MustCompile(`=> (\S*/(libc\.\S+))`).FindSubmatch(out)
	if err != nil || file == nil {
		t.Fatalf("ldd shows no C library: %v: %s", err, out)
	}
	out, err = exec.Command("readelf", "-n", string(file[1])).Output()
	id := regexp.MustCompile(`Build ID: ([0-9a-f]+)`).FindSubmatch(out)
	if err != nil || id == nil {
		t.Fatalf("readelf shows no build ID: %v: %s", err, out)
	}
	got := values(ReadSubject(ThisHost(), s))
	if got["library."+string(file[2])] != string(id[1]) || got["library."+filepath.Base(s.Path)] != "" || got["kernel"] != "" {
		t.Errorf("conditions are %v, and %s has the build ID %s", got, file[1], id[1])
	}
}

func TestGoProgram(t *testing.T) {
	path, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, "version", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := values(Read(Host{}, Subject{Path: path}))
	fields := strings.Fields(string(out)) // PATH: VERSION
	if got["program_go"] != fields[len(fields)-1] {
		t.Errorf("Go version %q, go version says %s", got["program_go"], out)
	}
}

func TestNoProgram(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "run.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	got := values(Read(Host{}, Subject{Path: script}))
	if len(got) != 3 || got["program"] != "run.sh" || got["program_bytes"] != "10" {
		t.Errorf("a script has %v", got)
	}
	if got := values(Read(Host{}, Subject{Path: dir + "/none"})); len(got) != 1 || got["program"] != "none" {
		t.Errorf("a missing file has %v", got)
	}
}

func TestManifest(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "redis.manifest.sgx"), []byte("abc"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := values(Read(Host{}, Subject{Dir: dir, Args: []string{"gramine-sgx", "redis", "--port", "1"}}))
	// FIPS 180-2, appendix B.1: the hash of "abc".
	const want = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if got["manifest.redis.manifest.sgx"] != want || len(got) != 1 {
		t.Errorf("conditions are %v, want the manifest as %s", got, want)
	}
}

func TestSettingsOfAManifest(t *testing.T) {
	dir := t.TempDir()
	const text = "loader.log_level = \"error\"\nsgx.thread_num = 8 # as before Gramine 1.4\nsgx.enclave_size = \"512M\"\nsgx.trusted_files = [\"file:a\"]\n" +
		"sgx.edmm_enable = false\nloader.env.PASSWORD = \"secret\"\n"
	if err := os.WriteFile(filepath.Join(dir, "redis.manifest"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got := values(Read(Host{}, Subject{Dir: dir, Args: []string{"gramine-direct", "redis"}}))
	const name = "manifest.redis.manifest"
	for key, want := range map[string]string{"loader.log_level": "error", "sgx.max_threads": "8", "sgx.enclave_size": "512M", "sgx.edmm_enable": "false"} {
		if got[name+" "+key] != want {
			t.Errorf("%s is %q, want %q", key, got[name+" "+key], want)
		}
	}
	if len(got) != 5 || !strings.HasPrefix(got[name], "sha256:") {
		t.Errorf("conditions are %v", got)
	}
}

func TestOfProcess(t *testing.T) {
	t.Setenv("GOGC", "123")
	cmd := exec.Command("sleep", "60")
	cmd.Dir = t.TempDir()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	// The kernel shows a new program before its arguments.
	var s Subject
	var err error
	for end := time.Now().Add(time.Minute); (len(s.Args) < 2 || len(s.Environ) < 2) && time.Now().Before(end); {
		if s, err = OfProcess(ThisHost(), cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	if got := values(Read(ThisHost(), s)); !strings.HasSuffix(s.Path, filepath.Base(got["program"])) || got["env.GOGC"] != "123" || got["affinity"] == "" {
		t.Errorf("%s %q has %v", s.Path, s.Args, got)
	}
	if s.Dir != cmd.Dir || len(s.Args) != 2 {
		t.Errorf("it is %s %q in %s", s.Path, s.Args, s.Dir)
	}
	if _, err := OfProcess(fake(t, nil), 1); err == nil {
		t.Error("a process that is not there has conditions")
	}
}

// run runs git in a directory without the user's configuration.
func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestGit(t *testing.T) {
	dir := t.TempDir()
	of := func(dir string) map[string]string { return values(Read(Host{}, Subject{Dir: dir})) }
	same := func(what, dir string) {
		t.Helper()
		got := of(dir)
		if want := run(t, dir, "rev-parse", "HEAD"); got["git_commit"] != want {
			t.Errorf("%s: commit %q, git says %s", what, got["git_commit"], want)
		}
		if want := run(t, dir, "branch", "--show-current"); got["git_branch"] != want {
			t.Errorf("%s: branch %q, git says %q", what, got["git_branch"], want)
		}
	}
	state := func(what, dir, want string) {
		t.Helper()
		if got := GitState(t.Context(), dir); got != (Condition{"git_state", want, Program}) {
			t.Errorf("%s: %v, want %s", what, got, want)
		}
	}
	state("no repository", dir, unknown)
	if got := of(dir); len(got) != 0 {
		t.Errorf("a directory without a repository has %v", got)
	}
	run(t, dir, "init", "-q")
	if got := of(dir); got["git_commit"] != "" {
		t.Errorf("a repository without a commit has %v", got)
	}
	file := filepath.Join(dir, "sub", "file")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("1")
	run(t, dir, "add", ".")
	run(t, dir, "commit", "-q", "-m", "1")
	same("a loose reference", dir)
	same("a directory below", filepath.Dir(file))
	state("after a commit", dir, clean)
	write("22")
	state("after a change", dir, modified)
	run(t, dir, "commit", "-q", "-a", "-m", "2")
	run(t, dir, "pack-refs", "--all")
	same("packed references", dir)
	tree := filepath.Join(t.TempDir(), "tree")
	run(t, dir, "worktree", "add", "-q", "-b", "feature/x", tree)
	same("a worktree", tree)
	state("a worktree", tree, clean)
	run(t, dir, "checkout", "-q", "--detach", "HEAD~1")
	same("no branch", dir)
	for name, content := range map[string]string{".git/HEAD": "ref: refs/../../secret\n", "secret": strings.Repeat("a", 40) + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := of(dir); len(got) != 0 {
		t.Errorf("a reference outside of the repository is %v", got)
	}
}

// TestGitStartsNoMonitor has a configuration that names a program.
func TestGitStartsNoMonitor(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "init", "-q")
	run(t, dir, "commit", "-q", "--allow-empty", "-m", "1")
	mark := filepath.Join(t.TempDir(), "started")
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n: >"+mark+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "config", "core.fsmonitor", program)
	if got := gitState(t.Context(), dir); got != clean {
		t.Errorf("the state is %s", got)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("git has started the program")
	}
	run(t, dir, "status")
	if _, err := os.Stat(mark); err != nil {
		t.Error("plain git does not start the program either, so this test shows nothing")
	}
}
