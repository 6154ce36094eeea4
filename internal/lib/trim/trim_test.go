// SPDX-License-Identifier: Apache-2.0

package trim

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestTrimGivesBackThePagesOfTheProgram(t *testing.T) {
	resident := func() int {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(status)
		if m == nil {
			t.Fatal("no RssFile in /proc/self/status")
		}
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := resident()
	Trim()
	if after := resident(); after > before*3/4 {
		t.Errorf("%d KiB of files resident before, %d after", before, after)
	}
}

func TestCleanMappingsLeaveOutWhatWasWritten(t *testing.T) {
	const smaps = `00400000-01000000 r-xp 00000000 08:01 42      /usr/bin/teescope
Rss:               12000 kB
Anonymous:             0 kB
01000000-01002000 r--p 00c00000 08:01 42      /usr/bin/teescope
Rss:                   8 kB
Anonymous:             8 kB
01002000-02000000 r--p 00c02000 08:01 42      /usr/bin/teescope
Anonymous:             0 kB
02000000-03000000 rw-p 01c00000 08:01 42      /usr/bin/teescope
Anonymous:             0 kB
7f0000000000-7f0000100000 r-xp 00000000 08:01 43      /usr/lib/libc.so.6
Anonymous:             0 kB
7f0000100000-7f0000200000 r--p 00000000 00:00 0
Anonymous:             0 kB
`
	want := []mapping{{0x400000, 0x1000000}, {0x1002000, 0x2000000}}
	if got := cleanMappings(strings.NewReader(smaps), "/usr/bin/teescope"); !slices.Equal(got, want) {
		t.Errorf("cleanMappings = %x, want %x", got, want)
	}
}
