// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
)

// TestMain lets the test binary act as a program. A variable of the environment selects what it does.
func TestMain(m *testing.M) {
	switch job := os.Getenv("SYSTEM_TEST_JOB"); job {
	case "":
		os.Exit(m.Run())
	case "getppid":
		n, _ := strconv.Atoi(os.Getenv("SYSTEM_TEST_N"))
		for range n {
			_, _, _ = syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
		}
	case "on-line": // each line of input is a number of getppid and of failing close calls
		var n int
		for {
			if _, err := fmt.Scanln(&n); err != nil {
				return
			}
			for range n {
				_, _, _ = syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
				_, _, _ = syscall.RawSyscall(syscall.SYS_CLOSE, ^uintptr(0), 0, 0)
			}
			fmt.Println("done")
		}
	case "steady", "bursty", "loop", "mixed": // writes the number of its calls into a file until it is killed
		countAloud(os.Getenv("SYSTEM_TEST_N"), job)
	case "sleep":
		d, _ := time.ParseDuration(os.Getenv("SYSTEM_TEST_N"))
		sleepInSelect(d)
	case "sleeps": // eight threads that sleep ten times each
		d, _ := time.ParseDuration(os.Getenv("SYSTEM_TEST_N"))
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 10 {
					sleepInSelect(d)
				}
			})
		}
		all.Wait()
	case "sleeps-on-line": // each line of input is a time to sleep; answers with the time that it took by its own clock
		var text string
		for {
			if _, err := fmt.Scanln(&text); err != nil {
				return
			}
			d, _ := time.ParseDuration(text)
			began := time.Now()
			sleepInSelect(d)
			fmt.Println(int64(time.Since(began)))
		}
	case "refused": // calls that a filter refuses
		n, _ := strconv.Atoi(os.Getenv("SYSTEM_TEST_N"))
		refuse(unix.SYS_GETPPID)
		for range n {
			_, _, _ = syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
		}
	case "compat": // calls through the 32-bit entry, where getpid is number 20
		n, _ := strconv.Atoi(os.Getenv("SYSTEM_TEST_N"))
		getpid := code(0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3) // mov $20, %eax; int $0x80; ret
		for range n {
			getpid()
		}
	case "signals": // each is handled and returned from
		n, _ := strconv.Atoi(os.Getenv("SYSTEM_TEST_N"))
		got := make(chan os.Signal, 1)
		signal.Notify(got, unix.SIGUSR1)
		for range n {
			_ = unix.Kill(os.Getpid(), unix.SIGUSR1)
			<-got
		}
	case "leaderless": // the first thread exits; then each line of input is a number of calls of another thread
		stayInFirstThread()
		go answerCalls()
		_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
	case "thread-exec", "thread-exec-on-line": // a thread other than the first executes another program; on line: it says its ID and waits for a line
		stayInFirstThread()
		go func() {
			runtime.LockOSThread()
			if os.Getenv("SYSTEM_TEST_JOB") == "thread-exec-on-line" {
				fmt.Println(syscall.Gettid())
				_, _ = fmt.Scanln()
			}
			_ = os.Setenv("SYSTEM_TEST_JOB", "getppid")
			err := syscall.Exec(os.Getenv("SYSTEM_TEST_N"), []string{"next"}, append(os.Environ(), "SYSTEM_TEST_N=100"))
			panic(err)
		}()
		select {}
	// Writes the ID of a second thread. After a line of input that one makes 70 calls and forks a child, which makes 30. Then
	// the first thread makes 200.
	case "other-thread":
		stayInFirstThread()
		ended := make(chan error)
		go func() {
			runtime.LockOSThread()
			fmt.Println(syscall.Gettid())
			_, _ = fmt.Scanln()
			for range 70 {
				syscall.Getppid()
			}
			ended <- forkCalls(30)
		}()
		if err := <-ended; err != nil {
			panic(err)
		}
		for range 200 {
			syscall.Getppid()
		}
	case "child": // executes itself as Gramine does for a new process, and that makes 70 calls
		cmd := exec.Command(os.Args[0])
		cmd.Args = []string{os.Args[0], os.Args[1], "child", "5"}
		cmd.Env = append(os.Environ(), "SYSTEM_TEST_JOB=getppid", "SYSTEM_TEST_N=70")
		if err := cmd.Run(); err != nil {
			panic(err)
		}
	case "compat-errors": // failing calls of close through the 32-bit entry, after a line of input
		_, _ = fmt.Scanln()
		n, _ := strconv.Atoi(os.Getenv("SYSTEM_TEST_N"))
		// push %rbx; mov $6, %eax; mov $-1, %ebx; int $0x80; pop %rbx; ret
		fail := code(0x53, 0xb8, 6, 0, 0, 0, 0xbb, 0xff, 0xff, 0xff, 0xff, 0xcd, 0x80, 0x5b, 0xc3)
		for range n {
			fail()
		}
		fmt.Println("done")
		_, _ = fmt.Scanln()
	case "transfer": // after a line of input, each of some times transferred bytes in and out
		_, _ = fmt.Scanln()
		n, _ := strconv.Atoi(os.Getenv("SYSTEM_TEST_N"))
		transfer(n)
		fmt.Println("done")
		_, _ = fmt.Scanln()
	case "compete": // Each line of input is a number of rounds. In each round each of four threads computes for 0.2 ms and sleeps for 0.1 ms.
		var n int
		for {
			if _, err := fmt.Scanln(&n); err != nil {
				return
			}
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() { compete(n) })
			}
			all.Wait()
			fmt.Println("done")
		}
	case "write-file": // writes 64 MiB to a file, a MiB at a time
		chunk := make([]byte, 1<<20)
		f, err := os.Create(os.Getenv("SYSTEM_TEST_N"))
		for range 64 {
			if err == nil {
				_, err = f.Write(chunk)
			}
		}
		if err != nil {
			panic(err)
		}
	case "disk":
		useDisk(os.Getenv("SYSTEM_TEST_N"))
	case "read-file":
		readFile(os.Getenv("SYSTEM_TEST_N"))
	case "burn":
		d, _ := time.ParseDuration(os.Getenv("SYSTEM_TEST_N"))
		before := cpuOfProcess() // used before exec, and by the start of the runtime
		for end := time.Now().Add(d); time.Now().Before(end); {
		}
		fmt.Println((cpuOfProcess() - before).Seconds())
	}
}

// forkCalls forks a child that makes n calls without running another program, and waits for its end. The child has this
// thread only, so it makes calls that the runtime does not see.
func forkCalls(n int) error {
	child, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if child == 0 {
		for range n {
			_, _, _ = syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
		}
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
	_, err := syscall.Wait4(int(child), nil, 0, nil)
	return err
}

// stayInFirstThread locks the calling goroutine to the first thread of the process.
func stayInFirstThread() {
	for runtime.LockOSThread(); unix.Gettid() != os.Getpid(); runtime.LockOSThread() {
		runtime.UnlockOSThread()
		time.Sleep(time.Millisecond)
	}
}

// answerCalls makes the number of calls that each line of input requests. It ends the process at the end of the input.
func answerCalls() {
	for n := 0; ; {
		if _, err := fmt.Scanln(&n); err != nil {
			os.Exit(0)
		}
		for range n {
			_, _, _ = syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
		}
		fmt.Println("done")
	}
}

// countAloud makes system calls until it is killed, and writes their number into a mapped file. The calls are steady, in
// bursts of random length, without a pause, or mixed with other work as in a server.
func countAloud(file, kind string) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, 8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	n := (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(data)))
	random := rand.New(rand.NewPCG(1, uint64(kind[0])))
	for {
		for end := time.Now().Add(time.Duration(random.Int64N(int64(300 * time.Millisecond)))); time.Now().Before(end); {
			for range 50 {
				_, _, _ = syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
			}
			n.Add(50)
			switch kind {
			case "steady":
				_, _ = unix.Select(0, nil, nil, nil, &unix.Timeval{Usec: 20})
			case "mixed":
				for work := time.Now(); time.Since(work) < 100*time.Microsecond; {
				}
			}
		}
		if kind == "bursty" {
			time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
		}
	}
}

// compete computes and sleeps n times in a thread of its own.
func compete(n int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range n {
		for end := time.Now().Add(200 * time.Microsecond); time.Now().Before(end); {
		}
		sleepInSelect(100 * time.Microsecond)
	}
}

// code returns a function with these instructions, which may change only the accumulator.
func code(instructions ...byte) func() {
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		panic(err)
	}
	copy(page, instructions)
	entry := unsafe.Pointer(unsafe.SliceData(page))
	function := unsafe.Pointer(&entry) // a Go function is a pointer to the start of its code
	return *(*func())(unsafe.Pointer(&function))
}

// sleepInSelect sleeps in select, which the Go runtime never calls.
func sleepInSelect(d time.Duration) {
	tv := unix.NsecToTimeval(d.Nanoseconds())
	_, _ = unix.Select(0, nil, nil, nil, &tv)
}

// refuse makes a system call of this thread fail before it is entered. It locks the thread.
func refuse(nr uint32) {
	runtime.LockOSThread()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // seccomp_data.nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: nr},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		panic(err)
	}
}

func cpuOfProcess() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now)
	return time.Duration(now.Nano())
}

// start attaches a collector to this kernel. The test is skipped only without privileges.
func start(t *testing.T, o Options) *Collector {
	t.Helper()
	privilegetest.Alone(t)
	o.Proc, o.Sys, o.Cgroup = "/proc", "/sys", "/sys/fs/cgroup"
	o.Detector = tee.NewDetector(tee.Roots{Proc: "/proc", Dev: "/dev", Sys: "/sys"}, nil)
	o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	if o.MaxWorkloads == 0 {
		o.MaxWorkloads = 1024 // the machine may run many programs beside the test
	}
	c := New(o)
	if err := c.Init(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

type sample struct {
	name   string
	labels map[string]string
	value  float64
}

func scrape(t *testing.T, c *Collector) []sample {
	t.Helper()
	var samples []sample
	err := c.Collect(context.Background(), func(m prometheus.Metric) {
		var d dto.Metric
		if err := m.Write(&d); err != nil {
			t.Fatal(err)
		}
		s := sample{labels: map[string]string{}, value: d.GetCounter().GetValue() + d.GetGauge().GetValue()}
		s.name, _, _ = strings.Cut(strings.TrimPrefix(m.Desc().String(), `Desc{fqName: "`), `"`)
		for _, l := range d.Label {
			s.labels[l.GetName()] = l.GetValue()
		}
		samples = append(samples, s)
	})
	if err != nil {
		t.Fatal(err)
	}
	return samples
}

// sum adds up the samples of a family whose labels have the values given as name, value, ...
func sum(samples []sample, family string, labels ...string) float64 {
	total := 0.0
next:
	for _, s := range samples {
		if s.name != family {
			continue
		}
		for i := 0; i < len(labels); i += 2 {
			if s.labels[labels[i]] != labels[i+1] {
				continue next
			}
		}
		total += s.value
	}
	return total
}

// unique returns a program name that only this test process uses, within the 15 bytes of comm.
func unique(name string) string { return fmt.Sprintf("%.8s-%d", name, os.Getpid()%1_000_000) }

// program copies the test binary to another name.
func program(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), unique(name))
	if err := os.Link("/proc/self/exe", path); err == nil {
		return path
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, self, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func job(path, job, n string) *exec.Cmd {
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), "SYSTEM_TEST_JOB="+job, "SYSTEM_TEST_N="+n)
	return cmd
}

func run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
}

// transferred is the number of bytes that transfer moves in each direction per run: by seven calls of 1, 2, 3, 4, 5, 6 and 7
// bytes.
const transferred = 28

// transfer makes each call that moves bytes, and other calls that return a number.
func transfer(times int) {
	must := func(n int, err error) {
		if err != nil {
			panic(err)
		}
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(0, err)
	file, err := unix.MemfdCreate("transfer", 0)
	must(0, err)
	b := make([]byte, 8)
	for range times {
		must(unix.Write(pair[0], b[:1]))
		must(unix.Read(pair[1], b[:1]))
		must(unix.Pwrite(file, b[:2], 0))
		must(unix.Pread(file, b[:2], 0))
		must(unix.Writev(pair[0], [][]byte{b[:1], b[:2]}))
		must(unix.Readv(pair[1], [][]byte{b[:1], b[:2]}))
		must(0, unix.Sendto(pair[0], b[:4], 0, nil))
		_, _, err := unix.Recvfrom(pair[1], b[:4], 0)
		must(0, err)
		must(unix.SendmsgN(pair[0], b[:5], nil, nil, 0))
		_, _, _, _, err = unix.Recvmsg(pair[1], b[:5], nil, 0)
		must(0, err)
		must(unix.Pwritev(file, [][]byte{b[:6]}, 0))
		must(unix.Preadv(file, [][]byte{b[:6]}, 0))
		must(unix.Pwritev2(file, [][]byte{b[:7]}, 0, 0))
		must(unix.Preadv2(file, [][]byte{b[:7]}, 0, 0))
		unix.Getppid()
		_, _ = unix.Read(-1, b)
	}
}
