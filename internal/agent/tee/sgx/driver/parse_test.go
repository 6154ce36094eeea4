// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"
	"testing"
)

func TestParseStats(t *testing.T) {
	eight, err := parseStats([]byte("12 10 3000 4000 3500 24064 33 23000\n"))
	if err != nil || eight.created != 12 || eight.released != 10 || *eight.added != 3000 || eight.allocated != 4000 ||
		eight.freed != 3500 || eight.total != 24064 || eight.versionArray != 33 || eight.free != 23000 || eight.evicted != nil {
		t.Errorf("eight numbers: %+v, %v", eight, err)
	}
	ten, err := parseStats([]byte("12 10 4000 3500 24064 33 23000 700 600 50"))
	if err != nil || ten.allocated != 4000 || ten.total != 24064 || ten.free != 23000 || ten.added != nil ||
		*ten.evicted != 700 || *ten.loadedBack != 600 || *ten.backingFreed != 50 {
		t.Errorf("ten numbers: %+v, %v", ten, err)
	}
	for _, bad := range []string{"", "1 2 3 4 5 6 7", "1 2 3 4 5 6 7 8 9", "1 2 3 4 5 6 7 -8", "1 2 3 4 5 6 7 99999999999999999999"} {
		if _, err := parseStats([]byte(bad)); !errors.Is(err, errFormat) {
			t.Errorf("%q: %v, want %v", bad, err, errFormat)
		}
	}
}

func TestParseEnclaves(t *testing.T) {
	all, err := parseEnclaves([]byte("77 1 4096 5 4\n78 2 8192 6 5 1 3 2 123456 9 9\n79 3 100 1 1 7\n"))
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	if e := all[0]; e.pid != 78 || e.id != 2 || e.size != 8192 || e.added != 6 || e.resident != 5 ||
		*e.versionArray != 1 || *e.flags != 3 || *e.pagedOut != 2 {
		t.Errorf("all columns: %+v", e)
	}
	if e := all[1]; e.pid != 77 || e.versionArray != nil || e.flags != nil || e.pagedOut != nil {
		t.Errorf("five columns: %+v", e)
	}
	if e := all[2]; *e.versionArray != 7 || e.flags != nil {
		t.Errorf("six columns: %+v", e)
	}
}
