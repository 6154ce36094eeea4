// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// mark is in the environment of every process that these tests start, to find those that are left running. It does not
// begin with TEESCOPE_, because an unknown configuration key is an error.
const mark = "E2E_RUN_OF"

// binaryVariable names the binary under test, in the environment.
const binaryVariable = "TEESCOPE_BIN"

// binary is the teescope under test and programs the directory of the compiled progs/*.c.
var binary, programs string

func TestMain(m *testing.M) {
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	if os.Geteuid() != 0 {
		return 1, errors.New("these tests load BPF programs: run them as root (make e2e)")
	}
	if err := os.Setenv(mark, strconv.Itoa(os.Getpid())); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "teescope-e2e-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	// Some programs run as another user, who must be able to enter the directory.
	if err := os.Chmod(dir, 0o755); err != nil {
		return 1, err
	}
	programs = dir
	if err := compile(dir); err != nil {
		return 1, err
	}
	// Other users can run it here.
	binary = filepath.Join(dir, "teescope")
	if given := os.Getenv(binaryVariable); given != "" {
		if err := errors.Join(os.Unsetenv(binaryVariable), quiet("install", "-m", "755", given, binary)); err != nil {
			return 1, err
		}
	} else if err := quiet("go", "build", "-ldflags", "-s -w", "-o", binary, "github.com/teescope/teescope/cmd/teescope"); err != nil {
		return 1, err
	}
	code = m.Run()
	if left := leftRunning(); len(left) > 0 {
		return 1, fmt.Errorf("left running: %s", strings.Join(left, "; "))
	}
	return code, nil
}

// endWithin is the time that killed processes may take to end on a busy machine.
const endWithin = time.Minute

func compile(dir string) error {
	sources, err := filepath.Glob("progs/*.c")
	if err != nil {
		return err
	}
	for _, source := range sources {
		out := filepath.Join(dir, strings.TrimSuffix(filepath.Base(source), ".c"))
		if err := quiet("gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-static", "-o", out, source); err != nil {
			return err
		}
	}
	return nil
}

func quiet(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// leftRunning ends the processes with this run's mark that stay alive, and returns them.
func leftRunning() []string {
	left := marked()
	for end := time.Now().Add(endWithin); len(left) > 0 && time.Now().Before(end); left = marked() {
		time.Sleep(100 * time.Millisecond)
	}
	var lines []string
	for pid, line := range left {
		lines = append(lines, fmt.Sprintf("%d %s", pid, line))
		endProcess(pid)
	}
	return lines
}

// marked returns the command lines of the living processes with this run's mark.
func marked() map[int]string {
	found := map[int]string{}
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range environs {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(env, fmt.Appendf(nil, "%s=%d\x00", mark, os.Getpid())) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		found[pid] = string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
	}
	return found
}

// output collects the output of a process. It is safe to read while the process runs.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// process is a program that runs in the background until the test ends.
type process struct {
	name string
	cmd  *exec.Cmd
	log  output
	done chan struct{} // closed when it has ended
	err  error         // of Wait, valid once done is closed
}

// background starts a program. The end of the test kills it if it still runs.
func background(t *testing.T, name string, args ...string) *process {
	t.Helper()
	return backgroundFrom(t, nil, name, args...)
}

// tracer starts a program that needs tracefs, as perf and bpftrace do for classic tracepoints. Where tracefs is not
// mounted, the program gets a mount namespace with it, so that no test relies on the machine's mounts.
func tracer(t *testing.T, name string, args ...string) *process {
	t.Helper()
	const mounted = `[ -e /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"`
	return background(t, "unshare", append([]string{"--mount", "sh", "-c", mounted, "sh", name}, args...)...)
}

// backgroundFrom starts a program like background, with an input; nil means none.
func backgroundFrom(t *testing.T, stdin *os.File, name string, args ...string) *process {
	t.Helper()
	p := &process{name: filepath.Base(name), cmd: exec.Command(name, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if stdin != nil {
		p.cmd.Stdin = stdin
	}
	p.cmd.WaitDelay = time.Second
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.end()
		if t.Failed() {
			t.Logf("output of %s:\n%s", p.name, p.log.String())
		}
	})
	return p
}

// end asks the process to end and then kills the rest of its process group. A server that is killed at once would leave
// its workers behind.
func (p *process) end() {
	// An error means that no process is left.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(time.Minute):
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}

// A heldProcess waits for a line of its input first, and for the end of its input last.
type heldProcess struct {
	*process
	stdin io.WriteCloser
}

// held starts a program with an input that stays open until the test ends.
func held(t *testing.T, name string, args ...string) heldProcess {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	t.Cleanup(func() { write.Close() })
	return heldProcess{backgroundFrom(t, read, name, args...), write}
}

// letGo lets the process read one byte.
func (p heldProcess) letGo(t *testing.T) {
	t.Helper()
	if _, err := p.stdin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
}

// ended waits for the process to end by itself.
func (p *process) ended(t *testing.T, within time.Duration) error {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(within):
		t.Fatalf("%s has not ended after %s", p.name, within)
	}
	return p.err
}

// teescope is a running agent, server or up.
type teescope struct {
	*process
	addr  string          // host:port
	files map[int]float64 // by process: the fewest bytes of files that peak has seen in memory
}

// startWithin limits the time until /-/ready answers. The promise is a chart within two seconds on a quiet machine,
// which bench measures. This limit only ends a start that hangs.
const startWithin = testLimit

// exact makes the agent count every event at any cost, because these tests check counts and not estimates.
var exact = []string{"--overhead.budget", "100%"}

// start runs a subcommand on a free loopback port and waits until it is ready.
func start(t *testing.T, command string, args ...string) *teescope {
	t.Helper()
	return startBy(t, background, command, args...)
}

// startBy does the same with another way to start a program.
func startBy(t *testing.T, run func(t *testing.T, name string, args ...string) *process, command string, args ...string) *teescope {
	t.Helper()
	addr := freeAddr(t)
	all := []string{command, "--listen", addr}
	if command != "server" {
		all = append(all, exact...)
	}
	all = append(all, args...)
	s := &teescope{process: run(t, binary, all...), addr: addr}
	s.name = "teescope " + command
	eventually(t, startWithin, s.name+" to be ready", func() error {
		select {
		case <-s.done:
			t.Fatalf("%s ended before it was ready: %v\n%s", s.name, s.err, s.log.String())
		default:
		}
		_, err := get("http://" + addr + "/-/ready")
		return err
	})
	t.Cleanup(func() { s.stop(t) })
	return s
}

// agent starts the exporters alone.
func agent(t *testing.T, args ...string) *teescope {
	t.Helper()
	return start(t, "agent", args...)
}

// stop ends the program as systemd would, and requires a clean end. A second call does nothing.
func (s *teescope) stop(t *testing.T) {
	t.Helper()
	select {
	case <-s.done:
		return
	default:
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("%s: %v", s.name, err)
	}
	if err := s.ended(t, testLimit); err != nil {
		t.Errorf("%s after SIGTERM: %v\n%s", s.name, err, s.log.String())
	}
	if line := wrongQuery.FindString(s.log.String()); line != "" {
		t.Errorf("%s asked a query that its own data makes invalid: %s", s.name, line)
	}
}

// wrongQuery matches the log line of an analysis or a rule with a query that no database can answer on the data that it has.
var wrongQuery = regexp.MustCompile(`(?m)^.*(analysis failed|Evaluating rule failed).*(same labelset|many-to-many|multiple matches|duplicate series|must be explicit).*$`)

// portsGiven counts the ports that freeAddr has tried. The first one differs between processes, because other runs use ports too.
var (
	portsGiven atomic.Uint32
	firstPort  = uint32(97 * os.Getpid() % portsMany)
)

// The kernel gives a port below 32768 to no socket that leaves the choice to it (ip_local_port_range).
const portsFrom, portsMany = 20_000, 12_000

// freeAddr returns an address that nothing listens on. Neither the kernel nor this function gives its port to another
// program, so a program that starts later can listen there.
func freeAddr(t *testing.T) string {
	t.Helper()
	for range portsMany {
		addr := fmt.Sprintf("127.0.0.1:%d", portsFrom+(firstPort+portsGiven.Add(1))%portsMany)
		l, err := net.Listen("tcp", addr)
		if err == nil {
			l.Close()
			return addr
		} else if !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
	}
	t.Fatal("all ports are in use")
	return ""
}

// eventually repeats try until it returns no error.
func eventually(t *testing.T, within time.Duration, what string, try func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatalf("waited %s for %s: %v", within, what, err)
}

// inOneOf checks a figure with random noise. Each round takes a new measurement, and the test fails when all rounds
// fail.
func inOneOf(t *testing.T, rounds int, try func() error) {
	t.Helper()
	var err error
	for round := range rounds {
		if err = try(); err == nil {
			return
		}
		t.Logf("round %d of %d: %v", round+1, rounds, err)
	}
	t.Errorf("in each of %d rounds; at last: %v", rounds, err)
}

func get(url string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, resp.Status, body)
	}
	return string(body), err
}

// run runs a program to its end and returns its output.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return string(out)
}

// prog returns the path of a compiled program under a new name, which becomes its workload's name.
func prog(t *testing.T, source, as string) string {
	t.Helper()
	return copyTo(t, filepath.Join(programs, source), as)
}

// copyTo copies an executable. The kernel limits names of programs to 15 bytes.
func copyTo(t *testing.T, from, as string) string {
	t.Helper()
	if len(as) > 15 {
		t.Fatalf("the program name %q is longer than a kernel task name", as)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), as)
	writeProgram(t, to, data)
	return to
}

// writeProgram writes an executable. No other test forks meanwhile: its child would have the file open for writing for a moment, in
// which the kernel does not execute it (ETXTBSY).
func writeProgram(t *testing.T, file string, data []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(file, data, 0o755); err != nil {
		t.Fatal(err)
	}
}
