// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"strconv"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
)

func TestPIDInNamespace(t *testing.T) {
	for status, want := range map[string]int{
		"Name:\tx\nNSpid:\t12\t7\n": 7, "NSpid:\t5\n": 5, "NSpid:\t5": 0, "NSpid:\n": 0, "": 0, "NSpid:\tx\n": 0, "NSpid:\t0\n": 0,
	} {
		if pid, ok := parseNamespacePID([]byte(status)); pid != want || ok != (want > 0) {
			t.Errorf("%q is process %d, %t, want %d", status, pid, ok, want)
		}
	}
}

func TestVDSO(t *testing.T) {
	image, err := At("/proc").OwnVDSO(64 << 10)
	if err != nil || len(image) < 4 || string(image[:4]) != "\x7fELF" {
		t.Errorf("an image of %d bytes: %v", len(image), err)
	}
	if _, err := At("/proc").OwnVDSO(16); err == nil {
		t.Error("a limit of 16 bytes is no limit")
	}
}

// A process has pages mapped. The kernel reports none for its own threads and for ended processes.
func TestSize(t *testing.T) {
	dir := t.TempDir()
	for i, tt := range []struct {
		text string
		want uint64
		ok   bool
	}{{"1340 1018 512 230 0 400 0\n", 1340, true}, {"0 0 0 0 0 0 0\n", 0, true}, {"", 0, false}, {"-1 2\n", 0, false}} {
		hostfstest.Write(t, dir, strconv.Itoa(i)+"/statm", tt.text)
		if pages, err := At(dir).Process(i).Size(); pages != tt.want || (err == nil) != tt.ok {
			t.Errorf("%q: %d pages, %v", tt.text, pages, err)
		}
	}
	if pages, err := At("/proc").Self().Size(); pages == 0 || err != nil {
		t.Errorf("this process has %d pages, %v", pages, err)
	}
}
