// SPDX-License-Identifier: Apache-2.0

package read

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// straced is what strace 6.1 wrote with -f -yy of a program that moves known numbers of bytes: 3 x 1,000 one way and 10 the other
// through a socket with a name of Gramine, 4,096 into a file and 4,096 out of it, 500 and 4 into another one, and 5 through a pipe.
const straced = `15640 sendto(4<UNIX-STREAM:[5193603->5193604]>, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"..., 1000, 0, NULL, 0) = 1000
15640 recvfrom(5<UNIX-STREAM:[5193604->5193603,@"/gramine/1234/abcdef"]>, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"..., 4096, 0, NULL, NULL) = 1000
15640 sendto(4<UNIX-STREAM:[5193603->5193604]>, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"..., 1000, 0, NULL, 0) = 1000
15640 recvfrom(5<UNIX-STREAM:[5193604->5193603,@"/gramine/1234/abcdef"]>, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"..., 4096, 0, NULL, NULL) = 1000
15640 sendto(4<UNIX-STREAM:[5193603->5193604]>, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"..., 1000, 0, NULL, 0) = 1000
15640 recvfrom(5<UNIX-STREAM:[5193604->5193603,@"/gramine/1234/abcdef"]>, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"..., 4096, 0, NULL, NULL) = 1000
15640 sendto(5<UNIX-STREAM:[5193604->5193603,@"/gramine/1234/abcdef"]>, "yyyyyyyyyy", 10, 0, NULL, 0) = 10
15640 recvfrom(4<UNIX-STREAM:[5193603->5193604]>, "yyyyyyyyyy", 100, 0, NULL, NULL) = 10
15640 pwrite64(6</tmp/i/db/data>, "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"..., 4096, 0) = 4096
15640 pread64(6</tmp/i/db/data>, "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"..., 4096, 0) = 4096
15640 pread64(6</tmp/i/db/data>, "", 4096, 9999999) = 0
15640 write(7</tmp/i/plain>, "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"..., 500) = 500
15700 read(8<pipe:[5193610]>,  <unfinished ...>
15640 write(9<pipe:[5193610]>, "12345", 5) = 5
15700 <... read resumed>"12345", 10)    = 5
15640 writev(7</tmp/i/plain>, [{iov_base="ab", iov_len=2}, {iov_base="cd", iov_len=2}], 2) = 4
15640 read(999,  <unfinished ...>
15700 madvise(0x7ff5bb7c2000, 8368128, MADV_DONTNEED <unfinished ...>
15640 <... read resumed>0x7ff5bce33dd0, 5) = -1 EBADF (Bad file descriptor)
`

func TestTraffic(t *testing.T) {
	got, err := ParseTraffic([]byte(straced))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Moved{Calls: 15, Bytes: 6020 + 8192 + 504 + 10, Line: 1}); got.All != want {
		t.Errorf("all: %+v, want %+v", got.All, want)
	}
	if want := (Moved{Calls: 8, Bytes: 6020, Line: 1}); got.Gramine != want {
		t.Errorf("Gramine: %+v, want %+v", got.Gramine, want)
	}
	files := got.Files(func(name string) bool { return strings.HasPrefix(name, "/tmp/i/db/") })
	if want := (Moved{Calls: 3, Bytes: 8192, Line: 9}); files != want {
		t.Errorf("files: %+v, want %+v", files, want)
	}
}

// Other forms of a line: of a terminal, with times, of one thread, and what is not counted.
func TestTrafficLines(t *testing.T) {
	for line, want := range map[string]string{
		`[pid  15700] read(8</a b,c>, "x", 10) = 5`:                              "1 5",
		`12 1700000000.123456 pread64(3</a>, ""..., 4096, 0) = 4096 <0.000012>`:  "1 4096",
		`read(8</a>, " = 7", 10) = 5`:                                            "1 5",
		`sendmsg(3<TCP:[127.0.0.1:80->127.0.0.1:9]>, {}, MSG_NOSIGNAL) = 3`:      "1 3",
		`read(8</a>, "x", 10) = ?`:                                               "",
		`read(8</a>, 0x1, 10) = -1 EAGAIN (Resource temporarily unavailable)`:    "",
		`read(8, "x", 10) = 5`:                                                   "",
		`openat(AT_FDCWD</>, "x", O_RDONLY) = 5</x>`:                             "",
		`read(8</a>, "x", 10) = 99999999999999999999`:                            "",
		`7 <... read resumed>"x", 10) = 5`:                                       "",
		"7 read(8</a>,  <unfinished ...>\n8 <... read resumed>\"x\", 10) = 5":    "",
		"7 read(8</a>,  <unfinished ...>\n7 <... read resumed>\"x\", 10)    = 5": "1 5",
	} {
		got, err := ParseTraffic([]byte(line))
		if want == "" {
			if !errors.Is(err, errNothing) {
				t.Errorf("%s: %+v, %v", line, got, err)
			}
			continue
		}
		if text := fmt.Sprint(got.All.Calls, got.All.Bytes); err != nil || text != want {
			t.Errorf("%s: %s, %v, want %s", line, text, err, want)
		}
	}
}

// The number of distinguished files is bounded, and the sums stay right.
func TestTrafficIsBounded(t *testing.T) {
	var b strings.Builder
	for i := range maxTracked + 100 {
		fmt.Fprintf(&b, "1 read(3</%d>, \"\", 1) = 1\n", i)
	}
	got, err := ParseTraffic([]byte(b.String()))
	if all := got.Files(func(string) bool { return true }); err != nil || all.Calls != maxTracked || got.All.Calls != maxTracked+100 {
		t.Errorf("%+v of %+v, %v", all, got.All, err)
	}
}
