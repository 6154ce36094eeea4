// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRegions(t *testing.T) {
	m := Machine{MemoryMiB: 1024, Reserve: []int{16, 64}}
	got, err := m.Regions()
	// Node 0 is 512 + 16 MiB, node 1 is 512 + 64 MiB; each ends with its reserved memory.
	want := []Region{{Phys: 512 << 20, MiB: 16, Node: 0}, {Phys: (528 + 512) << 20, MiB: 64, Node: 1}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("regions %v (%v), want %v", got, err, want)
	}
	m.MemoryMiB = 3000
	if _, err := m.Regions(); err == nil {
		t.Error("memory reaches into the PCI hole")
	}
}

func TestCommandLine(t *testing.T) {
	m := Machine{
		Kernel: Kernel{Release: "6.12", Dir: "/k"}, CPUs: 4, MemoryMiB: 1024, Reserve: []int{16, 16},
		Forwards: []Forward{{8080, 9750}}, Append: "nosmt",
	}
	args, err := m.args("initrd")
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Join(args, " ")
	for _, want := range []string{
		"tcg,thread=single", "-smp 4,sockets=4 ", "-m 1056M", "memmap=16M$0x20000000 memmap=16M$0x41000000 nosmt",
		"nodeid=1,memdev=ram1,cpus=1,cpus=3", "hostfwd=tcp:127.0.0.1:8080-:20000", "path=/dev/fd/7 ",
	} {
		if !strings.Contains(line, want) {
			t.Errorf("the command line lacks %q:\n%s", want, line)
		}
	}
	m.Forwards, m.Tap = nil, "tap0"
	if args, err = m.args("initrd"); err != nil || !strings.Contains(strings.Join(args, " "), "ifname=tap0 -device virtio-net-pci") {
		t.Errorf("the command line lacks the tap interface: %v (%v)", args, err)
	}
}

// TestUntarStaysInside tries names that lead out of the folder, which a guest may send.
func TestUntarStaysInside(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "to")
	for _, name := range []string{"../escaped", "/escaped", "ok/../../escaped"} {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := untar(&archive, dir); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if _, err := os.Stat(filepath.Join(parent, "escaped")); err == nil {
		t.Error("a file escaped")
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var out tail
	for range 10 {
		_, _ = out.Write(bytes.Repeat([]byte("x"), tailSize/4))
	}
	_, _ = out.Write([]byte("the end\r\n"))
	if got := out.String(); len(got) != tailSize-1 || !strings.HasSuffix(got, "xthe end\n") {
		t.Errorf("%d bytes are kept, ending %q", len(got), got[len(got)-10:])
	}
}
