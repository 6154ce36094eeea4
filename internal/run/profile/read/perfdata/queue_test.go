// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run/profile"
)

// TestQueueSortsByTime compares the order with that of a stable sort, while records are added and removed.
func TestQueueSortsByTime(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var q queue
	var want []string
	times := map[string]uint64{}
	for round := range 200 {
		for i := range random.IntN(100) {
			at, name := uint64(random.IntN(50)), fmt.Sprintf("%d %d %s", round, i, strings.Repeat("x", random.IntN(60000)))
			times[name] = at
			q.push(at, record{kind: uint32(at), body: []byte(name)})
			want = append(want, name)
		}
		slices.SortStableFunc(want, func(a, b string) int { return cmp.Compare(times[a], times[b]) })
		n := random.IntN(len(want) + 1)
		if round == 199 {
			n = len(want)
		}
		for _, name := range want[:n] {
			if got := q.pop(); string(got.body) != name || got.kind != uint32(times[name]) {
				t.Fatalf("round %d: %.20q at %d, want %.20q at %d", round, got.body, got.kind, name, times[name])
			}
		}
		want = want[n:]
	}
	if len(q.heap) != 0 || q.used > 1 {
		t.Errorf("%d records and %d chunks are left", len(q.heap), q.used)
	}
}

// recordOf is a record as it is in a file.
func recordOf(kind uint32, misc uint16, body []byte) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, kind)
	b = le.AppendUint16(b, misc)
	b = le.AppendUint16(b, uint16(headerBytes+len(body)))
	return append(b, body...)
}

// streamOf is a stream of one event whose records have a thread and a time at their end.
func streamOf(records ...[]byte) []byte {
	le := binary.LittleEndian
	attr := make([]byte, 64)
	le.PutUint32(attr, 1)
	le.PutUint32(attr[4:], 64)
	le.PutUint64(attr[24:], sampleIP|sampleTID|sampleTime)
	le.PutUint64(attr[40:], 1<<18) // sample_id_all
	b := le.AppendUint64([]byte(Magics[0]), 16)
	b = append(b, recordOf(recordAttr, 0, attr)...)
	return append(b, bytes.Join(records, nil)...)
}

// mmapOf is a record of a mapping at a time.
func mmapOf(pid uint32, start, time uint64, path string) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, pid)
	b = le.AppendUint32(b, pid)
	for _, n := range []uint64{start, 4096, 0} {
		b = le.AppendUint64(b, n)
	}
	b = append(b, path...)
	b = append(b, make([]byte, 8-len(path)%8)...)
	b = le.AppendUint64(b, uint64(pid))
	return recordOf(recordMmap, modeUser, le.AppendUint64(b, time))
}

func sampleOf(pid uint32, ip, time uint64) []byte {
	le := binary.LittleEndian
	b := le.AppendUint64(nil, ip)
	b = le.AppendUint32(b, pid)
	b = le.AppendUint32(b, pid)
	return recordOf(recordSample, modeUser, le.AppendUint64(b, time))
}

// TestQueueIsBounded reads records that no round ends. They are handled before the memory is used up, and each once.
func TestQueueIsBounded(t *testing.T) {
	const n = 100_000
	var records [][]byte
	for i := range n {
		records = append(records, sampleOf(1, uint64(i), uint64(1+n-i)))
	}
	seen := make(map[uint64]bool)
	if _, err := Read(bytes.NewReader(streamOf(records...)), 4<<20, func(s *Sample) error {
		seen[s.Stack[0].Address] = true
		return nil
	}); err != nil || len(seen) != n {
		t.Errorf("%d samples, %v", len(seen), err)
	}
}

// TestHostileRecordsAreBounded: paths, threads and mappings end a recording that has too many.
func TestHostileRecordsAreBounded(t *testing.T) {
	long := func(i int) string { return fmt.Sprintf("/%d%s", i, strings.Repeat("x", 60000)) }
	for name, tt := range map[string]struct {
		record func(i int) []byte
		want   string
	}{
		"long paths": {func(i int) []byte { return mmapOf(1, uint64(i)*4096, 1, long(i)) }, "paths and names"},
		"mappings":   {func(i int) []byte { return mmapOf(1, uint64(i)*4096, 1, "/x") }, "threads and mappings"},
		"threads":    {func(i int) []byte { return sampleOf(uint32(i), 1, 1) }, "threads and mappings"},
		"names of threads": {func(i int) []byte {
			b := binary.LittleEndian.AppendUint64(nil, uint64(1+i%100))
			return recordOf(recordComm, 0, append(append(b, long(i)...), make([]byte, 24)...))
		}, "paths and names"},
	} {
		var records [][]byte
		for i := range 20_000 {
			records = append(records, tt.record(i))
			if len(records[0]) > 10_000 && i > 200 {
				break
			}
		}
		_, err := Read(bytes.NewReader(streamOf(records...)), 4<<20, func(*Sample) error { return nil })
		if !errors.Is(err, profile.ErrLimit) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
