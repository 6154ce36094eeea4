// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// load generates every event that a probe of teescope counts: system calls, switches, faults, processes, writes through
// the page cache, and ECALLs and OCALLs of a program with the functions of Intel's SDK. It runs until it is killed.
const load = `source=$PWD/internal/agent/tee/sgx/boundary/testdata && cd "$(mktemp -d)" && trap 'kill $!; rm -f f app libsgx_urts.so; rmdir "$PWD"; exit' TERM
gcc -O2 -shared -fPIC -o libsgx_urts.so "$source/urts.c" && gcc -O2 -o app "$source/app.c" -L. -lsgx_urts -Wl,-rpath,"$PWD" -lpthread
{ while :; do echo ecall 1000 2 1; sleep 0.2; done; } | ./app >/dev/null &
while :; do
dd if=/dev/zero of=f bs=4k count=256 2>/dev/null; cat f | cat >/dev/null; sync f; dd if=f of=/dev/null bs=1 count=20000 2>/dev/null; done`

// counts holds the runs and the seconds of one program while the kernel's statistics were enabled.
type counts struct{ runs, seconds float64 }

func measure(ctx context.Context, binary string, d time.Duration) (map[string]note, string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	url, end, err := startAgent(ctx, binary)
	if err != nil {
		return nil, "", err
	}
	defer end()
	shell := exec.CommandContext(ctx, "sh", "-c", load)
	shell.Cancel = func() error { return shell.Process.Signal(syscall.SIGTERM) }
	if err := shell.Start(); err != nil {
		return nil, "", err
	}
	defer func() { cancel(); _ = shell.Wait() }()
	floor, err := attachEmpty()
	if err != nil {
		return nil, "", err
	}
	defer floor.Close()
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return nil, "", fmt.Errorf("enabling eBPF run-time statistics: %w", err)
	}
	defer stats.Close()
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return nil, "", ctx.Err()
	}
	empty, err := floor.counts()
	if err != nil {
		return nil, "", err
	}
	all, err := scrape(ctx, url)
	if err != nil {
		return nil, "", err
	}
	notes, err := notesOf(all, empty, 1000)
	return notes, where(d), err
}

// notesOf returns nanoseconds per run of programs with enough runs.
func notesOf(all map[string]counts, empty counts, enough float64) (map[string]note, error) {
	programs, err := count(".")
	if err != nil {
		return nil, err
	}
	notes := map[string]note{}
	all["empty"] = empty
	for _, p := range programs {
		if c := all[prefixes[p.object]+p.name]; c.runs >= enough {
			notes[key(p.object, p.name)] = note(fmt.Sprintf("%.0f", c.seconds/c.runs*1e9))
		}
	}
	return notes, nil
}

// prefixes are what the agent puts before a program's name: the name of the TEE backend that loads its object.
var prefixes = map[string]string{
	"internal/agent/tee/sgx/driver/sgx.bpf.o":        "sgx/",
	"internal/agent/tee/sgx/boundary/boundary.bpf.o": "transition/",
	"internal/agent/tee/cvm/guest/guest.bpf.o":       "cvm/",
	"internal/agent/tee/vm/vm.bpf.o":                 "vm/",
	"internal/agent/tee/nitro/nitro.bpf.o":           "nitro/",
	"internal/agent/userprobe/userprobe.bpf.o":       "user/",
}

// readVirtual reads the metrics of an agent in the virtual SGX machine, and where and when they were measured.
func readVirtual(file string) (map[string]note, string, error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, "", err
	}
	all, err := parseCounts(body)
	if err != nil {
		return nil, "", err
	}
	const enough = 100 // the virtual machine is slow
	notes, err := notesOf(all, counts{}, enough)
	kernel := regexp.MustCompile(`node_uname_info\{[^}]*release="([^"]+)"`).FindSubmatch(body)
	info, statErr := os.Stat(file)
	if err = errors.Join(err, statErr); err != nil || kernel == nil || len(notes) == 0 {
		return nil, "", errors.Join(err, fmt.Errorf("%s: no kernel release, or no program with %d runs", file, enough))
	}
	return notes, fmt.Sprintf("%s, Linux %s, QEMU's emulation of a processor", info.ModTime().UTC().Format("2006-01-02"), kernel[1]), nil
}

func startAgent(ctx context.Context, binary string) (url string, end func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	addr := l.Addr().String()
	l.Close()
	agent := exec.CommandContext(ctx, binary, "agent", "--overhead.budget", "100%", "--transitions.trace", "on", "--watch", "comm=app", "--listen", addr)
	agent.Cancel = func() error { return agent.Process.Signal(syscall.SIGTERM) }
	if err := agent.Start(); err != nil {
		return "", nil, err
	}
	end = func() { _ = agent.Cancel(); _ = agent.Wait() }
	url = "http://" + addr + "/metrics"
	for begin := time.Now(); time.Since(begin) < 20*time.Second; time.Sleep(50 * time.Millisecond) {
		if _, err = scrape(ctx, url); err == nil {
			return url, end, nil
		}
	}
	end()
	return "", nil, fmt.Errorf("waiting for the agent: %w", err)
}

// scrape reads the agent's metrics about its programs.
func scrape(ctx context.Context, url string) (map[string]counts, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return parseCounts(body)
}

func parseCounts(body []byte) (map[string]counts, error) {
	all := map[string]counts{}
	lines := regexp.MustCompile(`(?m)^teescope_bpf_program_sampled_(run_seconds|runs)_total\{program="([^"]+)"\} (\S+)`)
	for _, m := range lines.FindAllStringSubmatch(string(body), -1) {
		n, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return nil, err
		}
		c := all[m[2]]
		if m[1] == "runs" {
			c.runs = n
		} else {
			c.seconds = n
		}
		all[m[2]] = c
	}
	return all, nil
}

// floor is the attached empty program.
type floor struct {
	programs *ebpf.Collection
	attached link.Link
}

func attachEmpty() (floor, error) {
	programs, err := ebpf.LoadCollection("bench/empty.bpf.o")
	if err != nil {
		return floor{}, fmt.Errorf("loading the empty program: %w", err)
	}
	attached, err := link.AttachTracing(link.TracingOptions{Program: programs.Programs["empty"]})
	if err != nil {
		programs.Close()
		return floor{}, fmt.Errorf("attaching the empty program: %w", err)
	}
	return floor{programs, attached}, nil
}

func (f floor) Close() {
	_ = f.attached.Close() // closing the program also detaches it
	f.programs.Close()
}

func (f floor) counts() (counts, error) {
	s, err := f.programs.Programs["empty"].Stats()
	if err != nil {
		return counts{}, err
	}
	return counts{float64(s.RunCount), s.Runtime.Seconds()}, nil
}

// where describes the machine and the time.
func where(d time.Duration) string {
	kernel := "an unknown kernel"
	if data, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = "Linux " + string(data[:len(data)-1])
	}
	cpu := "an unknown CPU"
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if m := regexp.MustCompile(`(?m)^model name\s*: (.*)$`).FindSubmatch(data); m != nil {
			cpu = string(m[1])
		}
	}
	return fmt.Sprintf("%s, %s, %s, %s of mixed load", time.Now().UTC().Format("2006-01-02"), kernel, cpu, d)
}
