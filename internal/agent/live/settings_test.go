// SPDX-License-Identifier: Apache-2.0

package live

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/clock"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

func TestSettingsInManifests(t *testing.T) {
	const signed = "container/app/redis-server.manifest.sgx"
	f := newFake(t)
	now := time.Now()
	s := NewSettings(f.machine(), []string{"sgx.enclave_size", "sgx.insecure__rpc_thread_num", "sgx.debug", "sgx.max_threads", "loader.argv"})
	s.now = func() time.Time { return now }
	settings := func(pid int, r teelabel.Runtime) (map[string]string, error) {
		now = now.Add(time.Minute) // so that the pace never matters
		return s.Of(pid, r, clock.SinceBoot()+time.Hour)
	}
	f.write(signed, "loader.argv = [\"redis-server\"]\nloader.env.PASSWORD = \"x\"\n[sgx]\nenclave_size = \"512M\"\nrpc_thread_num = 4\ndebug = true\n")
	want := map[string]string{"sgx.enclave_size": "512M", "sgx.insecure__rpc_thread_num": "4", "sgx.debug": "true"}
	for range 2 {
		if got, err := settings(100, teelabel.GramineSGX); err != nil || !maps.Equal(got, want) {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	for pid, r := range map[int]teelabel.Runtime{200: teelabel.GramineSGX, 400: teelabel.SCONE, 500: ""} { // a child, and no Gramine
		if got, err := settings(pid, r); err != nil || got != nil {
			t.Errorf("process %d: %q, %v", pid, got, err)
		}
	}
	if got, err := settings(300, teelabel.GramineDirect); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a manifest: %q, %v", got, err)
	}
	if got, err := s.Of(100, teelabel.GramineSGX, clock.SinceBoot()-time.Hour); !errors.Is(err, errChanged) {
		t.Errorf("with a manifest that was written later: %q, %v", got, err)
	}
	f.write(signed, "[sgx")
	if got, err := settings(100, teelabel.GramineSGX); err == nil || !strings.Contains(err.Error(), "redis-server.manifest.sgx:1") {
		t.Errorf("with a bad manifest: %q, %v", got, err)
	}
	if err := os.Truncate(filepath.Join(f.dir, signed), maxContinuous+1); err != nil {
		t.Fatal(err)
	}
	if got, err := settings(100, teelabel.GramineSGX); !errors.Is(err, inputfile.ErrSize) {
		t.Errorf("with a large manifest: %q, %v", got, err)
	}
}

// Programs that start repeatedly with different manifests must not use much time of the agent.
func TestManifestsAreParsedSlowly(t *testing.T) {
	f := newFake(t)
	now := time.Now()
	s := NewSettings(f.machine(), []string{"sgx.max_threads"})
	s.now = func() time.Time { return now }
	parsed := 0
	for i := range 100 {
		f.write("container/app/redis-server.manifest.sgx", fmt.Sprintf("# %s\nsgx.max_threads = %d\n", strings.Repeat("x", pace-64), i))
		switch got, err := s.Of(100, teelabel.GramineSGX, clock.SinceBoot()+time.Hour); {
		case err == nil && got["sgx.max_threads"] == fmt.Sprint(i):
			parsed++
		case !errors.Is(err, ErrPace):
			t.Fatalf("%q, %v", got, err)
		}
		now = now.Add(100 * time.Millisecond)
	}
	if parsed < 13 || parsed > 15 {
		t.Errorf("%d manifests of 256 KiB were parsed in 10 s, want 10, and 4 at once", parsed)
	}
}

// Programs that started together, as at the start of the agent, must not wait a minute for each other.
func TestManifestsOfManyProgramsAreParsedTogether(t *testing.T) {
	f := newFake(t)
	now := time.Now()
	s := NewSettings(f.machine(), []string{"sgx.max_threads"})
	s.now = func() time.Time { return now }
	f.write("container/app/redis-server.manifest.sgx", fmt.Sprintf("# %s\nsgx.max_threads = 8\n", strings.Repeat("x", 10<<10)))
	for pid := 1000; pid < 1064; pid++ {
		f.process(pid, 1, 1, "gramine/sgx/loader /usr/lib/gramine/sgx/libpal.so init redis-server", heap+enclave, "0")
		if got, err := s.Of(pid, teelabel.GramineSGX, clock.SinceBoot()+time.Hour); err != nil || got["sgx.max_threads"] != "8" {
			t.Fatalf("process %d: %q, %v", pid, got, err)
		}
	}
}
