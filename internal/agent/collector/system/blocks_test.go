// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// diskBlock is how many bytes the program of these tests reads, writes or discards at a time. diskSize is the size of the disk in
// bytes.
const diskBlock, diskSize = 8192, 4 << 20

// useDisk reads, writes, flushes or discards blocks of a device, one after the other and without the page cache, as many as each
// line of input says. It answers with the nanoseconds that this took.
func useDisk(device string) {
	f, err := os.OpenFile(device, os.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		panic(err)
	}
	block, err := unix.Mmap(-1, 0, diskBlock, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		panic(err)
	}
	var op string
	var n int
	for {
		if _, err := fmt.Scanln(&op, &n); err != nil {
			return
		}
		took := time.Duration(0)
		for i := range n {
			at := int64(i * diskBlock % diskSize)
			began := time.Now()
			switch op {
			case "read":
				_, err = f.ReadAt(block, at)
			case "write":
				_, err = f.WriteAt(block, at)
			case "flush":
				err = f.Sync()
			case "durable": // a write that the device has to flush
				_, err = unix.Pwritev2(int(f.Fd()), [][]byte{block}, at, unix.RWF_DSYNC)
			case "discard":
				span := [2]uint64{uint64(at), diskBlock}
				if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.BLKDISCARD, uintptr(unsafe.Pointer(&span))); errno != 0 {
					err = errno
				}
			}
			if err != nil {
				panic(err)
			}
			took += time.Since(began)
		}
		fmt.Println(took.Nanoseconds())
	}
}

// loopDevice returns a new block device, whose blocks are in memory.
func loopDevice(t *testing.T) string {
	t.Helper()
	memory, err := unix.MemfdCreate("disk", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(memory)
	if err := unix.Ftruncate(memory, diskSize); err != nil {
		t.Fatal(err)
	}
	return loopOf(t, memory)
}

// loopOf returns a new block device with the blocks of a file.
func loopOf(t *testing.T, file int) string {
	t.Helper()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer control.Close()
	for range 100 { // another program may take the number that was free
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			t.Fatal(err)
		}
		device := fmt.Sprintf("/dev/loop%d", n)
		f, err := os.OpenFile(device, os.O_RDWR, 0)
		if err != nil {
			t.Skip(err) // a container may have no file of the device
		}
		if err := unix.IoctlSetInt(int(f.Fd()), unix.LOOP_SET_FD, file); err != nil {
			_ = f.Close()
			continue
		}
		t.Cleanup(func() {
			if err := unix.IoctlSetInt(int(f.Fd()), unix.LOOP_CLR_FD, 0); err != nil {
				t.Error(err)
			}
			_ = f.Close()
		})
		return device
	}
	t.Fatal("no loop device")
	return ""
}

// requests are the requests of one operation: their number, bytes and time in seconds.
type requestCount struct{ n, bytes, seconds float64 }

func (a requestCount) since(b requestCount) requestCount {
	return requestCount{a.n - b.n, a.bytes - b.bytes, a.seconds - b.seconds}
}

// statOf reads the counts of the kernel for a device, by operation.
func statOf(t *testing.T, device string) map[string]requestCount {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(device), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text))
	all := map[string]requestCount{}
	for op, at := range map[string]int{"read": 0, "write": 4, "discard": 11} {
		var c requestCount
		for i, to := range map[int]*float64{0: &c.n, 2: &c.bytes, 3: &c.seconds} {
			if *to, err = strconv.ParseFloat(fields[at+i], 64); err != nil {
				t.Fatal(err)
			}
		}
		c.bytes, c.seconds = c.bytes*512, c.seconds/1e3
		all[op] = c
	}
	return all
}

// stated returns what a collector reports as not counted: requests whose workload was unknown at their end, and events for which
// the kernel did not run a program because that program was already running on the CPU.
type stated struct{ requests, runs float64 }

func statedLosses(t *testing.T, c *Collector) stated {
	t.Helper()
	s := stated{requests: sum(scrape(t, c), "teescope_attribution_lost_total", "what", "requests")}
	for _, cost := range c.kernel.object.Costs() {
		if strings.HasPrefix(cost.Program, "block_") {
			s.runs += float64(cost.Missed)
		}
	}
	return s
}

// atLeast reads the counts of the kernel for a device, once the kernel has counted this many requests of an operation since an
// earlier reading. The kernel counts a request after it has woken the thread that waits for it.
func atLeast(t *testing.T, device, op string, since requestCount, n float64) (count requestCount) {
	t.Helper()
	waittest.Until(t, fmt.Sprintf("%v requests of %s", n, op), func() bool {
		count = statOf(t, device)[op].since(since)
		return count.n >= n
	})
	return count
}

// requestsOf returns the counts of a collector for a workload, by operation.
func requestsOf(t *testing.T, c *Collector, workload string) map[string]requestCount {
	t.Helper()
	all := map[string]requestCount{}
	err := c.Collect(context.Background(), func(m prometheus.Metric) {
		switch m := m.(type) {
		case *metric.Distribution:
			if m.Of.Name == "teescope_block_io_latency_seconds" && m.Labels[0] == workload {
				all[m.Labels[4]] = requestCount{float64(m.N), all[m.Labels[4]].bytes, m.Sum}
			}
		case *metric.Sample:
			if m.Of.Name == "teescope_block_io_bytes_total" && m.Labels[0] == workload {
				c := all[m.Labels[4]]
				c.bytes = m.Value
				all[m.Labels[4]] = c
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The requests of a program equal those that it made and those that the kernel counted for its device: their number, bytes and
// operation are exact. Their time is at most the time that passed for the program. It equals the time of the kernel to a
// millisecond, because the kernel reads the clock again when a request has ended. If the machine takes the CPU away in between,
// the time of the kernel is longer, so the comparison is repeated until the two agree. It is also repeated if the collector
// reports lost requests.
//
// False alarms: none. If a round takes 5 % longer in half of all cases, 100 rounds do so in one of 1e30.
func TestRequestsAreThoseOfTheDevice(t *testing.T) {
	c := start(t, Options{})
	device, workload := loopDevice(t), unique("disk")
	p := converse(t, job(program(t, "disk"), "disk", device))
	for _, tt := range []struct {
		op, as string
		each   float64 // bytes
	}{{"read", "read", diskBlock}, {"write", "write", diskBlock}, {"flush", "write", 0}, {"durable", "write", diskBlock}, {"discard", "discard", diskBlock}} {
		agreed := false
		for round := 0; round < 100 && !agreed; round++ {
			const n = 300
			before, stat, lost := requestsOf(t, c, workload), statOf(t, device), statedLosses(t, c)
			took, err := strconv.ParseFloat(p.say(fmt.Sprintf("%s %d", tt.op, n)), 64)
			if err != nil {
				t.Fatal(err)
			}
			got := requestsOf(t, c, workload)[tt.as].since(before[tt.as])
			want := atLeast(t, device, tt.as, stat[tt.as], n)
			t.Logf("%s: %+v, want %+v in at most %v s", tt.op, got, want, took/1e9)
			if now := statedLosses(t, c); now != lost && got.n < want.n {
				t.Logf("%s: lost %+v, then %+v", tt.op, lost, now)
				continue
			}
			if got.n != want.n || got.bytes != want.bytes || want.n < n || want.bytes != n*tt.each {
				t.Fatalf("%s: %+v, the kernel says %+v, and no request is said to be lost (%+v)", tt.op, got, want, lost)
			}
			if got.seconds > min(took/1e9, want.seconds+0.001) || got.seconds <= 0 {
				t.Fatalf("%s: %+v is longer than the kernel says, %+v, or than %v s", tt.op, got, want, took/1e9)
			}
			agreed = got.seconds > 0.95*want.seconds-0.001
		}
		if !agreed {
			t.Errorf("%s: the time of requests is always shorter than the kernel says, or some are lost", tt.op)
		}
	}
}

// frozenDevice returns a new block device whose writes wait until thaw is called: its blocks are in a file of a frozen file system.
func frozenDevice(t *testing.T) (device string, thaw func()) {
	t.Helper()
	below, dir := loopDevice(t), t.TempDir()
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", below).CombinedOutput(); err != nil {
		t.Skipf("no file system: %v\n%s", err, out)
	}
	if err := unix.Mount(below, dir, "ext4", 0, ""); err != nil {
		t.Skipf("this machine cannot mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	f, err := os.Create(filepath.Join(dir, "disk"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, diskBlock)); err != nil {
		t.Fatal(err)
	}
	device = loopOf(t, int(f.Fd()))
	root, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	const freeze, unfreeze = 0xc0045877, 0xc0045878 // FIFREEZE and FITHAW of include/uapi/linux/fs.h
	if err := unix.IoctlSetInt(int(root.Fd()), freeze, 0); err != nil {
		t.Fatal(err)
	}
	thaw = sync.OnceFunc(func() {
		if err := errors.Join(unix.IoctlSetInt(int(root.Fd()), unfreeze, 0), root.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(thaw)
	return device, thaw
}

// A request that is in flight when the probes are attached has an unknown maker. It is counted, and nothing was lost.
func TestRequestsInFlightAtTheStartAreNotLost(t *testing.T) {
	privilegetest.Alone(t)
	for round := range 20 { // the kernel may drop events of other devices while another agent attaches programs
		device, thaw := frozenDevice(t)
		p := converse(t, job(program(t, "inflight"), "disk", device))
		t.Cleanup(thaw) // before the end of the program, which waits
		fmt.Fprintln(p.in, "write 1")
		waiting := func() bool {
			text, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(device), "inflight"))
			if err != nil {
				t.Fatal(err)
			}
			return strings.Fields(string(text))[1] == "1"
		}
		for !waiting() {
			time.Sleep(time.Millisecond)
		}
		c := start(t, Options{})
		before := requestsOf(t, c, "other")["write"]
		thaw()
		var took int
		if _, err := fmt.Fscanln(p.out, &took); err != nil {
			t.Fatal(err)
		}
		atLeast(t, device, "write", requestCount{}, 1)
		other, lost := requestsOf(t, c, "other")["write"].since(before), statedLosses(t, c)
		t.Logf("round %d: %+v requests of unknown makers, lost %+v", round, other, lost)
		if other.n >= 1 && lost.requests == 0 {
			return
		}
	}
	t.Error("each round, a request was lost")
}

// Requests that the kernel does not count are not remembered. Otherwise each of their tags would take a place for ever, and the
// next request with that tag could count for the workload of the last one. Some kernels show them only when they are issued.
func TestUncountedRequestsAreForgotten(t *testing.T) {
	privilegetest.Alone(t)
	o, err := bpf.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if err := errors.Join(o.Resize("blocks", slotFirst), o.CreateMaps()); err != nil {
		t.Fatal(err)
	}
	for _, tracepoint := range []string{"block_rq_issue", "block_rq_complete"} {
		if _, err := o.Attach(bpf.Tracepoint(tracepoint, tracepoint)); err != nil {
			t.Fatal(err)
		}
	}
	device := loopDevice(t)
	counting := filepath.Join("/sys/block", filepath.Base(device), "queue/iostats")
	if err := os.WriteFile(counting, []byte("0"), 0o600); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { // the next loop device may be the same
		if err := os.WriteFile(counting, []byte("1"), 0o600); err != nil {
			t.Error(err)
		}
	})
	remembered := func() map[uint64]bool {
		all := map[uint64]bool{}
		var key uint64
		var value []byte
		entries := o.Map("requests").Iterate()
		for entries.Next(&key, &value) {
			all[key] = true
		}
		if err := entries.Err(); err != nil && !errors.Is(err, ebpf.ErrIterationAborted) { // entries change meanwhile
			t.Fatal(err)
		}
		return all
	}
	converse(t, job(program(t, "uncounted"), "disk", device)).say("read 300")
	always := remembered() // with those of other programs, which end
	waittest.Until(t, "the requests that have ended to be forgotten", func() bool {
		now := remembered()
		maps.DeleteFunc(always, func(key uint64, _ bool) bool { return !now[key] })
		return len(always) == 0
	})
}

// A slot may become free while a request is in flight, and be used again. Such a request does not count for the next workload.
func TestRequestsDoNotCountForTheNextOwnerOfASlot(t *testing.T) {
	c := start(t, Options{})
	device, workload := loopDevice(t), unique("owner")
	p := converse(t, job(program(t, "owner"), "disk", device))
	p.say("read 10")
	atLeast(t, device, "read", requestCount{}, 10)
	before, stat, lost := requestsOf(t, c, workload)["read"], statOf(t, device)["read"], statedLosses(t, c)
	var owner *uint32
	for sl := range c.slots.All() {
		if sl.Workload.Name == workload {
			owner = &c.kernel.groups.Records[sl.Number].TGID
		}
	}
	if owner == nil {
		t.Fatal("the program has no slot")
	}
	stop, stopped := make(chan bool), make(chan bool)
	go func() { // changes the owner again and again, so while requests are in flight
		defer close(stopped)
		for own := *owner; ; {
			select {
			case <-stop:
				atomic.StoreUint32(owner, own)
				return
			default:
				atomic.AddUint32(owner, 1)
			}
		}
	}()
	// The goroutine may get no CPU while requests are in flight, and then all of them count.
	left := 0.0
	for end, n := time.Now().Add(2*time.Minute), 1000.0; left == 0 && time.Now().Before(end); n += 1000 {
		p.say("read 1000")
		got, all, now := requestsOf(t, c, workload)["read"].since(before), atLeast(t, device, "read", stat, n), statedLosses(t, c)
		requests, runs := now.requests-lost.requests, now.runs-lost.runs
		t.Logf("%v of %v requests count for the workload, %v have lost theirs, %v runs of programs are missed", got.n, all.n, requests, runs)
		if left = all.n - got.n; requests+runs < left {
			t.Errorf("%v requests are missing, %v count for none, and %v runs of programs are missed", left, requests, runs)
		}
	}
	close(stop)
	<-stopped
	if left == 0 {
		t.Error("all requests count for an owner that did not make them")
	}
}

// The kernel drops some events while another program is attached to a tracepoint. A request whose end was dropped is lost when the
// next one has its address. Here the program is detached, so all ends are dropped.
func TestRequestsWhoseEndWasNotSeenAreLost(t *testing.T) {
	c := start(t, Options{})
	for _, s := range c.kernel.status {
		if s.Probe == beginProbe && s.Program != startTracepoint {
			t.Skip("the kernel does not show the beginning of requests")
		}
	}
	device, workload := loopDevice(t), unique("unended")
	p := converse(t, job(program(t, "unended"), "disk", device))
	p.say("read 10")
	before, lost := requestsOf(t, c, workload)["read"], statedLosses(t, c)
	if err := c.kernel.object.Detach("block_rq_complete"); err != nil {
		t.Fatal(err)
	}
	p.say("read 100")
	if err := c.kernel.object.Reattach("block_rq_complete"); err != nil {
		t.Fatal(err)
	}
	p.say("read 1000")
	if got := requestsOf(t, c, workload)["read"].since(before); got.n != 1000 {
		t.Errorf("%v requests count, want 1000", got.n)
	}
	now := statedLosses(t, c)
	// Requests of other devices are lost too. The last one of each address is found only when that address is used again.
	if n := now.requests - lost.requests; n < 50 {
		t.Errorf("%v requests are lost, of which 100 are the program's", n)
	}
}
