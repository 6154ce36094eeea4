// SPDX-License-Identifier: Apache-2.0

package tee

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// watching reports openings until end is called, which waits for Run.
func watching(t *testing.T, roots Roots) (o *Opened, end func()) {
	t.Helper()
	o, err := NewOpened(roots)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { o.Run(); close(ended) }()
	return o, func() {
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		<-ended
	}
}

// Each opening of a device is reported, and nothing else is. Without a device there is nothing to watch.
func TestOpened(t *testing.T) {
	roots := Roots{Dev: t.TempDir()}
	if o, err := NewOpened(roots); o != nil || err != nil {
		t.Fatalf("%v, %v without a device", o, err)
	}
	for _, node := range sgxNodes {
		path := filepath.Join(roots.Dev, node)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o, end := watching(t, roots)
	if _, err := os.Stat(filepath.Join(roots.Dev, sgxNodes[0])); err != nil {
		t.Fatal(err)
	}
	select {
	case <-o.C:
		t.Error("a device was reported that no process opened")
	default:
	}
	for _, node := range sgxNodes {
		f, err := os.Open(filepath.Join(roots.Dev, node))
		if err != nil {
			t.Fatal(err)
		}
		<-o.C // the test has a limit of its own
		_ = f.Close()
	}
	end()
}

// Run ends although nothing receives what it reports.
func TestOpenedEndsUnheard(t *testing.T) {
	roots := Roots{Dev: t.TempDir()}
	device := filepath.Join(roots.Dev, sgxNodes[0])
	if err := os.WriteFile(device, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, end := watching(t, roots)
	for range 3 {
		f, err := os.Open(device)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	end()
}

// A young program is inspected again at once when a device is opened, and an older one at its time.
func TestHurry(t *testing.T) {
	for age, want := range map[time.Duration]teelabel.Kind{firstWait / 2: teelabel.SGX, young: teelabel.None} {
		r := machine(t, map[string]string{"proc/7/maps": ""})
		d, now := clocked(r)
		follow(d)
		*now = now.Add(age)
		d.Workload([]uint32{7})
		hostfstest.Write(t, filepath.Dir(r.Proc), "proc/7/maps", enclaveMap)
		d.Due()
		d.Hurry()
		tgids, _ := d.Due()
		if kind, _ := d.Workload(tgids); kind != want {
			t.Errorf("a program that runs for %s is in %q when a device has been opened, want %q", age, kind, want)
		}
	}
}
