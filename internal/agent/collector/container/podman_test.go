// SPDX-License-Identifier: Apache-2.0

package container

import (
	"archive/tar"
	"debug/elf"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// podman runs real containers in separate storage.
type podman struct {
	t    *testing.T
	root string
}

// newPodman imports an image "box" with a static busybox.
func newPodman(t *testing.T) *podman {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("containers with limits need root")
	}
	for _, program := range []string{"podman", "runc", "busybox"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed (Debian: apt install podman runc busybox-static)", program)
		}
	}
	if !static(t) {
		t.Skip("busybox is not linked statically (Debian: apt install busybox-static)")
	}
	root, err := os.MkdirTemp("", "podman")
	if err != nil {
		t.Fatal(err)
	}
	p := &podman{t: t, root: root}
	// The limit of open files is low, because root may not be allowed to raise it. Podman itself creates the
	// control groups, because there may be no systemd.
	hostfstest.Write(t, p.root, "containers.conf", `[containers]
default_ulimits=["nofile=1024:1024","nproc=1024:1024"]
[engine]
runtime="runc"
cgroup_manager="cgroupfs"
events_logger="none"
`)
	t.Cleanup(p.clean)
	p.run("import", p.image(), "box")
	return p
}

// static reports whether busybox runs without any other file.
func static(t *testing.T) bool {
	t.Helper()
	path, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Section(".interp") == nil
}

// clean removes all containers and their storage. A container can be removed only after those that depend on it. The
// monitor of each container writes its last file after podman has ended.
func (p *podman) clean() {
	var err error
	for range 3 {
		if _, err = p.try("rm", "--all", "--force", "--time", "0"); err == nil {
			break
		}
	}
	if err != nil {
		p.t.Error(err)
	}
	waittest.Until(p.t, "the storage to be removed", func() bool { return os.RemoveAll(p.root) == nil })
}

// image creates a root file system that contains only busybox.
func (p *podman) image() string {
	path, err := exec.LookPath("busybox")
	if err != nil {
		p.t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(p.root, "image.tar"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer file.Close()
	out := tar.NewWriter(file)
	err = out.WriteHeader(&tar.Header{Name: "bin/busybox", Mode: 0o755, Size: int64(len(data))})
	if err == nil {
		_, err = out.Write(data)
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return file.Name()
}

func (p *podman) try(args ...string) (string, error) {
	at := func(name string) string { return filepath.Join(p.root, name) }
	cmd := exec.Command("podman", append([]string{"--root", at("root"), "--runroot", at("run"), "--tmpdir", at("tmp"), "--storage-driver", "vfs"}, args...)...)
	cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+at("containers.conf"))
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok {
		err = fmt.Errorf("podman %s: %w: %s", strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

func (p *podman) run(args ...string) string {
	p.t.Helper()
	out, err := p.try(args...)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

func (p *podman) collector() *Collector {
	return New(Options{
		Proc: "/proc", Sys: "/sys", Cgroup: "/sys/fs/cgroup",
		Storage: []string{filepath.Join(p.root, "root"), filepath.Join(p.root, "run")},
	})
}

// until waits for a state of a container. The limit only ends a test that hangs.
func (p *podman) until(what string, reached func() bool) {
	p.t.Helper()
	waittest.Until(p.t, what, reached)
}

// stats holds the figures that podman reports for a container.
func (p *podman) stats(name string) (cpu time.Duration, memory, limit float64, pids string) {
	p.t.Helper()
	var all []struct {
		CPUTime string `json:"cpu_time"`
		Memory  string `json:"mem_usage"`
		PIDs    string `json:"pids"`
	}
	if err := json.Unmarshal([]byte(p.run("stats", "--no-stream", "--format", "json", name)), &all); err != nil || len(all) != 1 {
		p.t.Fatalf("podman stats: %v, %d containers", err, len(all))
	}
	cpu, err := time.ParseDuration(all[0].CPUTime)
	used, most, _ := strings.Cut(all[0].Memory, " / ")
	if err != nil {
		p.t.Fatal(err)
	}
	return cpu, bytesOf(p.t, used), bytesOf(p.t, most), all[0].PIDs
}

// bytesOf reads a size as podman prints it: "352.3kB".
func bytesOf(t *testing.T, s string) float64 {
	t.Helper()
	for unit, size := range map[string]float64{"kB": 1e3, "MB": 1e6, "GB": 1e9} {
		if number, ok := strings.CutSuffix(s, unit); ok {
			n, err := strconv.ParseFloat(number, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n * size
		}
	}
	t.Fatalf("podman prints the size %q", s)
	return 0
}

// number returns the value of the only sample of a family for a container.
func number(t *testing.T, text []byte, family string, parts ...string) float64 {
	t.Helper()
	s := sample(t, text, family, parts...)
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Errorf("%s%v is %q", family, parts, s)
		return math.NaN()
	}
	return n
}

// The families of a real container under load and at its limits agree with podman.
func TestPodmanContainer(t *testing.T) {
	p := newPodman(t)
	// It fills its memory with page cache first, and then uses more CPU time than its limit.
	full := p.run("run", "--detach", "--name", "burner", "--cpus", "0.2", "--memory", "32m", "--memory-swap", "32m",
		"--pids-limit", "50", "--network", "none", "box", "/bin/busybox", "sh", "-c",
		"busybox dd if=/dev/zero of=/file bs=1048576 count=64; busybox sleep 1000 & echo computing; while :; do :; done")
	const me, usage, user = `name="burner"`, "container_cpu_usage_seconds_total", "container_cpu_user_seconds_total"
	throttling := []string{"container_cpu_cfs_periods_total", "container_cpu_cfs_throttled_periods_total", "container_cpu_cfs_throttled_seconds_total"}
	c := p.collector()
	p.until("the container computes", func() bool { return strings.Contains(p.run("logs", "burner"), "computing") })
	before := exposition(t, c)
	// On a busy machine it takes a while until the container gets more CPU time than its limit. The kernel adds the time of throttling at
	// its end.
	p.until("the container was throttled and has computed for 0.3 s", func() bool {
		now := exposition(t, c)
		grew := func(family string) float64 { return number(t, now, family, me) - number(t, before, family, me) }
		return !slices.ContainsFunc(throttling, func(family string) bool { return grew(family) == 0 }) && grew(usage) > 0.3
	})
	cpu, memory, limit, pids := p.stats("burner")
	after := exposition(t, c)

	for family, want := range map[string]float64{
		"container_spec_memory_limit_bytes": 32 << 20, "container_spec_cpu_quota": 20_000, "container_spec_cpu_period": 100_000,
		"container_threads_max": 50, "container_threads": 2, "container_processes": 2,
	} {
		if got := number(t, after, family, me); got != want {
			t.Errorf("%s is %v, want %v", family, got, want)
		}
	}
	if got := sample(t, after, "teescope_container_info", me, `image="localhost/box:latest"`, `workload="`+full[:12]+`"`, `container="`+full[:12]+`"`); got != "1" {
		t.Errorf("no container has the image and ID of podman:\n%s", after)
	}
	grown := func(family string) float64 { return number(t, after, family, me) - number(t, before, family, me) }
	if low, high := number(t, before, usage, me), number(t, after, usage, me); cpu.Seconds() < low || cpu.Seconds() > high {
		t.Errorf("podman reports %v of CPU; the collector %v s before and %v s afterwards", cpu, low, high)
	}
	if user, all := grown(user), grown(usage); math.Abs(user-all) > all/2 {
		t.Errorf("a program that only computes used %v s of %v s in user mode", user, all)
	}
	for _, family := range throttling {
		if n := grown(family); !(n > 0) {
			t.Errorf("%s grew by %v in a throttled container", family, n)
		}
	}
	if got := number(t, after, "container_memory_usage_bytes", me); math.Abs(got-memory) > 1<<20 && math.Abs(number(t, after, "container_memory_working_set_bytes", me)-memory) > 1<<20 {
		t.Errorf("podman reports %v bytes of memory, the collector %v", memory, got)
	}
	if math.Abs(limit-32<<20) > 1e5 || pids != "2" {
		t.Errorf("podman reports a limit of %v bytes and %s processes", limit, pids)
	}
	if most, cache := number(t, after, "container_memory_max_usage_bytes", me), number(t, after, "container_memory_cache", me); most < 16<<20 || most > 32<<20 || cache < 1<<20 {
		t.Errorf("the file of 64 MB took at most %v bytes of 32 MB, and has %v bytes of page cache", most, cache)
	}
	if set, used := number(t, after, "container_memory_working_set_bytes", me), number(t, after, "container_memory_usage_bytes", me); set > used-1<<20 {
		t.Errorf("the working set is %v of %v bytes, most of which are an idle file", set, used)
	}
	started, err := time.Parse("2006-01-02 15:04:05.999999999 -0700 MST", p.run("inspect", "--format", "{{.State.StartedAt}}", "burner"))
	if got := number(t, after, "container_start_time_seconds", me); err != nil || math.Abs(got-float64(started.UnixMilli())/1e3) > 3 {
		t.Errorf("started at %v, podman reports %v (%v)", got, started, err)
	}

	p.run("rename", "burner", "renamed")
	now := time.Now().Add(lookEvery)
	c.now = func() time.Time { return now }
	if sample(t, exposition(t, c), "container_processes", `name="renamed"`) == "" {
		t.Error("the container does not have its new name")
	}
	p.run("rm", "--force", "--time", "0", "renamed")
	if sample(t, exposition(t, c), "container_processes", `container="`+full[:12]+`"`) != "" {
		t.Error("the container was removed and still has series")
	}
}

// The network figures of a container are those of its namespace. Containers that share a namespace have one set of
// figures. A container in the machine's namespace has none.
func TestPodmanNetwork(t *testing.T) {
	for _, program := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	p := newPodman(t)
	sleep := []string{"box", "/bin/busybox", "sleep", "1000"}
	start := func(name string, args ...string) {
		p.run(append(append([]string{"run", "--detach", "--name", name}, args...), sleep...)...)
	}
	start("first", "--network", "none")
	start("second", "--network", "container:first")
	start("host", "--network", "host")
	pid := p.run("inspect", "--format", "{{.State.Pid}}", "first")
	within := func(args ...string) {
		if out, err := exec.Command("nsenter", append([]string{"--target", pid, "--net"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	within("ip", "link", "add", "one", "type", "veth", "peer", "name", "two")
	within("ip", "link", "set", "one", "up") // both send IPv6 neighbour messages
	within("ip", "link", "set", "two", "up")
	c := p.collector()
	const family = "container_network_transmit_bytes_total"
	sent := func(text []byte, name string) string {
		return sample(t, text, family, `name="`+name+`"`, `interface="one"`)
	}
	waittest.Until(t, "a container to send", func() bool {
		text := exposition(t, c)
		if s := sent(text, "second"); s != "" {
			t.Fatalf("the container that shares the namespace has sent %s bytes", s)
		}
		if s := sample(t, text, family, `name="host"`); s != "" { // sample fails if there are several
			t.Fatalf("the container in the machine's namespace has sent %s bytes", s)
		}
		s := sent(text, "first")
		return s != "" && s != "0"
	})
}

// Short-lived containers cause no errors, and no data about them remains.
func TestPodmanShortLived(t *testing.T) {
	p := newPodman(t)
	c := p.collector()
	done := make(chan error)
	go func() {
		for range 10 {
			if _, err := p.try("run", "--rm", "--network", "none", "box", "/bin/busybox", "true"); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	seen := 0.0
	for running := true; running; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		default:
			seen = max(seen, number(t, exposition(t, c), "teescope_containers", `state="named"`))
		}
	}
	t.Logf("at most %v containers at once", seen)
}
