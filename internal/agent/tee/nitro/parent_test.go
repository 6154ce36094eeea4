// SPDX-License-Identifier: Apache-2.0

package nitro

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

func TestParent(t *testing.T) {
	const run = "/usr/bin/nitro-cli\x00run-enclave\x00--cpu-count\x002\x00--memory=512\x00--enclave-name\x00signer\x00--enclave-cid\x0016\x00"
	roots := parent(t, map[string]string{
		"proc/100/comm": "nitro-cli\n", "proc/100/cmdline": run,
		"proc/200/comm": "nitro-cli\n", "proc/200/cmdline": "nitro-cli\x00run-enclave\x00--config\x00/etc/enclave.json\x00",
		"proc/300/comm": "nitro-cli\n", "proc/300/cmdline": run, // holds no enclave
		"proc/400/comm": "other\n", "proc/400/cmdline": run,
		"sys/module/nitro_enclaves/parameters/ne_cpus": "1,5-7\n",
	})
	for pid, target := range map[string]string{"100": held, "200": held, "300": "anon_inode:[eventpoll]", "400": held} {
		holds(t, roots, pid, target)
	}
	ready := make(chan struct{})
	close(ready)
	b := New(Options{Roots: roots, Reads: reader.New(reader.Options{Proc: hostfs.At(roots.Proc), Ready: ready, Log: slog.New(slog.DiscardHandler)})})
	got := emitted(func(emit func(prometheus.Metric)) {
		if err := b.emitParent(emit); err != nil {
			t.Error(err)
		}
	})
	want := map[string]float64{
		"nitro_enclaves ": 2, "nitro_enclave_info 100 signer 16": 1, "nitro_enclave_cpus 100": 2, "nitro_enclave_memory_bytes 100": 512 << 20,
		"nitro_enclave_info 200  ": 1, "nitro_pool_cpus ": 4,
	}
	if !maps.Equal(got, want) {
		t.Errorf("emitted %v, want %v", got, want)
	}
}

// holds gives a process an open file.
func holds(t *testing.T, roots tee.Roots, pid, target string) {
	t.Helper()
	dir := filepath.Join(roots.Proc, pid, "fd")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Symlink(target, filepath.Join(dir, "5"))); err != nil {
		t.Fatal(err)
	}
}

// A user with many processes of that name neither takes time without end nor hides an enclave of another user, but the number is unknown.
func TestManyProcessesPretend(t *testing.T) {
	files := map[string]string{}
	for pid := 100; pid < 100+2*maxLooked; pid++ {
		at := fmt.Sprintf("proc/%d/", pid)
		files[at+"comm"], files[at+"cmdline"], files[at+"status"] = "nitro-cli\n", "nitro-cli\x00", "Uid:\t7\t7\t7\t7\n"
	}
	files["proc/900/comm"], files["proc/900/cmdline"], files["proc/900/status"] = "nitro-cli\n", "nitro-cli\x00", "Uid:\t8\t8\t8\t8\n"
	roots := parent(t, files)
	for _, pid := range []string{"227", "900"} { // the first one is beyond its user's share
		holds(t, roots, pid, held)
	}
	b := New(Options{Roots: roots, Reads: reader.New(reader.Options{Proc: hostfs.At(roots.Proc), Log: slog.New(slog.DiscardHandler)})})
	var err error
	got := emitted(func(emit func(prometheus.Metric)) { err = b.emitParent(emit) })
	if !errors.Is(err, errMany) || !maps.Equal(got, map[string]float64{"nitro_enclave_info 900  ": 1}) {
		t.Errorf("emitted %v, %v", got, err)
	}
}

// If the process of an enclave does not answer, only its existence is known: no name, and no number of CPUs or bytes.
func TestAnEnclaveWhoseProcessDoesNotAnswer(t *testing.T) {
	roots := parent(t, map[string]string{
		"proc/100/comm": "nitro-cli\n", "proc/100/cmdline": "nitro-cli\x00run-enclave\x00--cpu-count\x002\x00--memory=512\x00--enclave-name\x00signer\x00",
		"sys/module/nitro_enclaves/parameters/ne_cpus": "1\n",
	})
	holds(t, roots, "100", held)
	ready := make(chan struct{})
	b := New(Options{Roots: roots, Reads: reader.New(reader.Options{Proc: hostfs.At(roots.Proc), Ready: ready, Log: slog.New(slog.DiscardHandler)})})
	for _, want := range []map[string]float64{
		{"nitro_enclaves ": 1, "nitro_pool_cpus ": 1},
		{"nitro_enclaves ": 1, "nitro_pool_cpus ": 1, "nitro_enclave_info 100 signer ": 1, "nitro_enclave_cpus 100": 2, "nitro_enclave_memory_bytes 100": 512 << 20},
	} {
		var err error
		got := emitted(func(emit func(prometheus.Metric)) { err = b.emitParent(emit) })
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("emitted %v, %v, want %v", got, err, want)
		}
		if len(want) == 2 {
			close(ready) // it answers
		}
	}
}

func TestPool(t *testing.T) {
	for text, want := range map[string]map[string]float64{"\n": {"nitro_pool_cpus ": 0}, "3\n": {"nitro_pool_cpus ": 1}, "x\n": {}} {
		b := New(Options{Roots: parent(t, map[string]string{"sys/module/nitro_enclaves/parameters/ne_cpus": text})})
		var err error
		got := emitted(func(emit func(prometheus.Metric)) { err = b.emitPool(emit) })
		if !maps.Equal(got, want) || (err != nil) != (len(want) == 0) {
			t.Errorf("%q: emitted %v, %v, want %v", text, got, err, want)
		}
	}
}

// FuzzForeign reads arguments, which anyone who starts an enclave chooses.
func FuzzForeign(f *testing.F) {
	f.Add("--enclave-name", "a\xffb", "--memory=99999999999999999999")
	f.Add("--cpu-count=2", "--memory", "512")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		e := describe(1, []string{a, b, c})
		if len(e.name) > 4*maxName || !utf8.ValidString(e.name) || e.cid >= 1<<32 || e.cpus >= 1<<32 || e.memory >= 1<<52 {
			t.Errorf("%+v", e)
		}
	})
}
