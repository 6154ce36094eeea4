// SPDX-License-Identifier: Apache-2.0

package hostfs

import "testing"

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
