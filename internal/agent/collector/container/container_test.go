// SPDX-License-Identifier: Apache-2.0

package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
)

// empty is a version 2 machine without containers.
func empty(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	hostfstest.Write(t, root, "cgroup/cgroup.controllers", "cpu memory\n")
	hostfstest.Write(t, root, "proc/stat", "btime 1700000000\n")
	return root
}

// run starts the n-th fake container under a name.
func run(t testing.TB, root string, n int, name string) {
	t.Helper()
	hostfstest.Write(t, root, group(n)+"/memory.current", "100\n")
	hostfstest.Write(t, root, group(n)+"/cgroup.procs", fmt.Sprintln(1000+n))
	rename(t, root, n, name)
}

func rename(t testing.TB, root string, n int, name string) {
	t.Helper()
	hostfstest.Write(t, root, "docker/"+id(n)+"/config.v2.json", `{"Name":"/`+name+`","Config":{"Image":"image"}}`)
}

func TestContainersComeAndGo(t *testing.T) {
	root := empty(t)
	c := fake(root)
	run(t, root, 0, "first")
	run(t, root, 1, "second")
	text := exposition(t, c)
	for _, name := range []string{"first", "second"} {
		if got := sample(t, text, "container_memory_usage_bytes", `name="`+name+`"`); got != "100" {
			t.Errorf("%s uses %q", name, got)
		}
	}
	if err := os.RemoveAll(filepath.Join(root, group(0))); err != nil {
		t.Fatal(err)
	}
	text = exposition(t, c)
	if got := sample(t, text, "container_memory_usage_bytes", `name="first"`); got != "" {
		t.Errorf("a container that ended uses %q", got)
	}
	if got := sample(t, text, "teescope_containers", `state="named"`); got != "1" {
		t.Errorf("%q containers have names, want 1", got)
	}
}

// A container that ends between the walk and the reading causes no error and has no samples.
func TestContainerThatGoesAwayMidway(t *testing.T) {
	root := empty(t)
	c := fake(root)
	run(t, root, 0, "first")
	exposition(t, c)
	if _, err := c.find(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(root, group(0))); err != nil {
		t.Fatal(err)
	}
	all := c.oldestFirst()
	if len(all) != 1 {
		t.Fatalf("%d containers, want 1", len(all))
	}
	c.emit(all[0], c.now(), map[string]bool{}, func(m prometheus.Metric) { t.Errorf("emitted %v", m.Desc()) })
}

func TestRenamedContainer(t *testing.T) {
	root := empty(t)
	c := fake(root)
	now := time.Unix(1_700_001_000, 0)
	c.now = func() time.Time { return now }
	run(t, root, 0, "before")
	if got := sample(t, exposition(t, c), "container_memory_usage_bytes", `name="before"`); got == "" {
		t.Error("the container does not have its name")
	}
	rename(t, root, 0, "after")
	now = now.Add(lookEvery)
	if got := sample(t, exposition(t, c), "container_memory_usage_bytes", `name="after"`); got == "" {
		t.Error("the container does not have its new name")
	}
	// While the runtime writes its file, the name stays.
	hostfstest.Write(t, root, "docker/"+id(0)+"/config.v2.json", `{"Name":`)
	now = now.Add(lookEvery)
	if got := sample(t, exposition(t, c), "container_memory_usage_bytes", `name="after"`); got == "" {
		t.Error("the container lost its name")
	}
}

// A restarted container has the same ID and name, but is in another control group.
func TestRestartedContainer(t *testing.T) {
	root := empty(t)
	c := fake(root)
	start := func(ticks int) {
		hostfstest.Write(t, root, "proc/1000/stat", fmt.Sprintf("1000 (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0\n", ticks))
		run(t, root, 0, "x")
	}
	for _, ticks := range []int{100, 500} {
		start(ticks)
		want := strconv.FormatFloat(1_700_000_000+float64(ticks)/100, 'g', -1, 64)
		if got := sample(t, exposition(t, c), "container_start_time_seconds"); got != want {
			t.Errorf("started at %s, want %s", got, want)
		}
		if err := os.Rename(filepath.Join(root, group(0)), filepath.Join(root, fmt.Sprint("gone", ticks))); err != nil { // keeps the inode in use
			t.Fatal(err)
		}
	}
}

func TestContainersAreBounded(t *testing.T) {
	root := empty(t)
	c := fake(root)
	c.opts.Max = 3
	for n := 10; n < 13; n++ {
		run(t, root, n, fmt.Sprint("old", n))
	}
	exposition(t, c)
	for n := range 5 { // first in the order of the walk, but known containers have precedence
		run(t, root, n, fmt.Sprint("new", n))
	}
	text := exposition(t, c)
	if got := sample(t, text, "teescope_containers", `state="left_out"`); got != "5" {
		t.Errorf("%q containers are left out, want 5", got)
	}
	for n := 10; n < 13; n++ {
		if sample(t, text, "container_memory_usage_bytes", fmt.Sprintf(`name="old%d"`, n)) == "" {
			t.Errorf("old%d lost its series", n)
		}
	}
	if err := os.RemoveAll(filepath.Join(root, group(11))); err != nil {
		t.Fatal(err)
	}
	if sample(t, exposition(t, c), "container_memory_usage_bytes", `name="new0"`) == "" {
		t.Error("a container below the limit has no series")
	}
}

// Hundreds of containers come and go while they are read.
func TestShortLivedContainers(t *testing.T) {
	root := empty(t)
	c := fake(root)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for n := worker * 1000; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				run(t, root, n, fmt.Sprint("short", n))
				if err := os.RemoveAll(filepath.Join(root, group(n))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 100 {
		exposition(t, c)
	}
	close(stop)
	wg.Wait()
	exposition(t, c)
	if len(c.known) != 0 {
		t.Errorf("%d containers are still known", len(c.known))
	}
}

// Names of groups may have any bytes. Each is one series.
func TestOddNames(t *testing.T) {
	root := empty(t)
	for n, parent := range []string{"new\nline", `quo"te`, "back\\slash", "bad\xff", "bad\xfe", `bad\xff`, "\u00fcml\u00e4ut"} {
		hostfstest.Write(t, root, "cgroup/"+parent+"/docker-"+id(n)+".scope/memory.current", "1\n")
	}
	for _, same := range []string{"bad\xff", `bad\xff`} {
		hostfstest.Write(t, root, "cgroup/"+same+"/lxc.payload.a\xffb/memory.current", "1\n")
	}
	deep := "cgroup" + strings.Repeat("/"+strings.Repeat("x", 200), 8) // longer than the maximum of other label values
	for n := range 2 {
		hostfstest.Write(t, root, deep+"/docker-"+id(n)+".scope/memory.current", "1\n")
	}
	if got := strings.Count(string(exposition(t, fake(root))), "\ncontainer_memory_usage_bytes{"); got != 11 {
		t.Errorf("%d containers, want 11", got)
	}
}

func TestNoControlGroups(t *testing.T) {
	c := fake(t.TempDir())
	if err := os.Mkdir(c.opts.Cgroup, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := c.Collect(t.Context(), func(prometheus.Metric) {}); !errors.Is(err, cgroup.ErrNone) {
		t.Errorf("Collect without control groups: %v", err)
	}
}

func TestCollectEndsWithItsContext(t *testing.T) {
	root := empty(t)
	run(t, root, 0, "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := fake(root).Collect(ctx, func(prometheus.Metric) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("Collect of an ended context: %v", err)
	}
}

// The containers of this machine can be read, and the exposition is well formed.
func TestRealMachine(t *testing.T) {
	if _, err := cgroup.Open("/sys/fs/cgroup"); err != nil {
		t.Skip(err)
	}
	exposition(t, New(Options{Proc: "/proc", Sys: "/sys", Cgroup: "/sys/fs/cgroup"}))
}

// BenchmarkCollect reads 200 containers with everything that version 2 has; the file system is not kernfs.
func BenchmarkCollect(b *testing.B) {
	root := empty(b)
	machine := unpack(b, "v2.txt")
	const pod = "cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9.slice"
	template := filepath.Join(machine, pod, "cri-containerd-"+strings.Repeat("b2", 32)+".scope")
	for n := range 200 {
		if err := os.CopyFS(filepath.Join(root, group(n)), os.DirFS(template)); err != nil {
			b.Fatal(err)
		}
		rename(b, root, n, fmt.Sprint("c", n))
		if err := os.WriteFile(filepath.Join(root, group(n), "cgroup.procs"), fmt.Appendln(nil, 1000+n), 0o644); err != nil {
			b.Fatal(err)
		}
		hostfstest.Write(b, root, fmt.Sprintf("proc/%d/ns/net", 1000+n), fmt.Sprintf("-> net:[%d]", n))
		for _, name := range []string{"stat", "net/dev"} {
			data, err := os.ReadFile(filepath.Join(machine, "proc/100", name))
			if err != nil {
				b.Fatal(err)
			}
			hostfstest.Write(b, root, fmt.Sprintf("proc/%d/%s", 1000+n, name), string(data))
		}
	}
	benchmark(b, fake(root))
}
