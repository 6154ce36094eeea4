// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// deadServer is a statfs that sleeps on some paths until it is released.
type deadServer struct {
	release chan struct{}
	calls   atomic.Int32 // number of calls for a dead path
}

func (d *deadServer) statfs(path string, s *unix.Statfs_t) error {
	if strings.HasSuffix(path, "/gone") {
		d.calls.Add(1)
		<-d.release
	}
	*s = unix.Statfs_t{Bsize: 1, Blocks: 8}
	return nil
}

func value(t *testing.T, c *Collector, family string, labels ...string) (float64, bool) {
	t.Helper()
	families, err := gather(t, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range families[family].GetMetric() {
		all := map[string]string{}
		for _, l := range m.GetLabel() {
			all[l.GetName()] = l.GetValue()
		}
		same := true
		for i := 0; i < len(labels); i += 2 {
			same = same && all[labels[i]] == labels[i+1]
		}
		if same {
			return m.GetGauge().GetValue(), true
		}
	}
	return 0, false
}

// TestDeadServer checks a file system that does not respond. The first scrape waits for it. Later ones neither wait nor
// call statfs again, and have the other file systems. When it responds again, it has samples again.
func TestDeadServer(t *testing.T) {
	o := roots(t)
	synctest.Test(t, func(t *testing.T) {
		d := &deadServer{release: make(chan struct{})}
		k := fakeKernel()
		k.statfs = d.statfs
		c := newCollector(o, k)
		for i, want := range []time.Duration{statfsPatience, 0, 0} {
			began := time.Now()
			v, ok := value(t, c, "node_filesystem_device_error", "mountpoint", "/gone", "device_error", timedOut)
			if took := time.Since(began); !ok || v != 1 || took != want {
				t.Errorf("scrape %d: device_error %v %v after %v, want 1 after %v", i, v, ok, took, want)
			}
		}
		if _, ok := value(t, c, "node_filesystem_size_bytes", "mountpoint", "/gone"); ok {
			t.Error("a file system that does not respond has a size")
		}
		if v, ok := value(t, c, "node_filesystem_size_bytes", "mountpoint", "/"); !ok || v != 8 {
			t.Errorf("/ has %v bytes, %v", v, ok)
		}
		if n := d.calls.Load(); n != 1 {
			t.Errorf("%d calls for it", n)
		}
		close(d.release)
		synctest.Wait()
		if v, ok := value(t, c, "node_filesystem_size_bytes", "mountpoint", "/gone"); !ok || v != 8 {
			t.Errorf("after it responds again it has %v bytes, %v", v, ok)
		}
	})
}

// TestManyDead checks that the number of sleeping calls is limited.
func TestManyDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deadServer{release: make(chan struct{})}
		a := newStatfsCaller(d.statfs)
		var mounts []mount
		for i := range maxCalls + 50 {
			mounts = append(mounts, mount{path: fmt.Sprintf("/%d/gone", i)})
		}
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), statfsPatience)
			if got := a.call(ctx, mounts); len(got) != 0 {
				t.Errorf("%d answers", len(got))
			}
			cancel()
			synctest.Wait()
		}
		if n := d.calls.Load(); n != maxCalls {
			t.Errorf("%d calls sleep, want %d", n, maxCalls)
		}
		close(d.release)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), statfsPatience)
		defer cancel()
		if got := a.call(ctx, mounts); len(got) != len(mounts) {
			t.Errorf("%d answers afterwards, want %d", len(got), len(mounts))
		}
	})
}

// A path with several mounts has one call.
func TestPathIsQueriedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		a := newStatfsCaller(func(string, *unix.Statfs_t) error {
			n++
			time.Sleep(time.Millisecond)
			return nil
		})
		got := a.call(t.Context(), []mount{{path: "/run"}, {path: "/run"}, {path: "/run"}})
		if len(got) != 1 || n != 1 {
			t.Errorf("%d answers to %d queries", len(got), n)
		}
	})
}
