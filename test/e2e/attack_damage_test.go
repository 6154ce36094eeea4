// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// oldBlocks fills the database of a data directory with blocks of two hours of the series heat, with a sample a minute in
// each of ten rooms. Debian's promtool writes them.
func oldBlocks(t *testing.T, data string, from time.Time, hours int) {
	t.Helper()
	var text strings.Builder
	text.WriteString("# TYPE heat gauge\n")
	for room := range 10 {
		for minute := range hours * 60 {
			fmt.Fprintf(&text, "heat{room=\"%d\"} %d %d\n", room, room*minute, from.Unix()+int64(minute)*60)
		}
	}
	text.WriteString("# EOF\n")
	file := filepath.Join(t.TempDir(), "heat.txt")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "promtool", "tsdb", "create-blocks-from", "openmetrics", file, filepath.Join(data, "tsdb"))
}

// flipByte inverts the bits of one byte of a file.
func flipByte(t *testing.T, file string, at int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	one := make([]byte, 1)
	_, err = f.ReadAt(one, at)
	one[0] ^= 0xff
	if _, e := f.WriteAt(one, at); errors.Join(err, e) != nil {
		t.Fatal(err, e)
	}
}

// One byte changes in the chunks of one block, and one in the index of another, as bad memory or a bad disk does. The chunk
// costs the samples of one series of its block, and the index costs its block. The log, the error and the metrics say which.
func TestFlippedBytesCostWhatTheyDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	end := time.Now().Truncate(2 * time.Hour)
	oldBlocks(t, dir, end.Add(-8*time.Hour), 8)
	blocks, err := filepath.Glob(filepath.Join(dir, "tsdb", "0*"))
	if err != nil || len(blocks) != 4 {
		t.Fatalf("promtool has written %v (%v)", blocks, err)
	}
	// The first series of a block begins behind the header. Chunks follow one another, and the middle of the file is not in
	// the last, which is read at the start.
	chunks, index := filepath.Join(blocks[0], "chunks", "000001"), filepath.Join(blocks[1], "index")
	info, err := os.Stat(chunks)
	if err != nil {
		t.Fatal(err)
	}
	flipByte(t, chunks, info.Size()/2)
	text, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	flipByte(t, index, firstSeries(t, text)+2)

	s := start(t, "server", "--data-dir", dir, "--interval", "1s", "--targets", "127.0.0.1:1")
	base, at := "http://"+s.addr, end.Add(-time.Minute)
	const rooms = "count_over_time(heat[9h])"
	if _, err := query(base, rooms, at); err == nil || !strings.Contains(err.Error(), filepath.Base(blocks[1])) {
		t.Errorf("the query that meets the damaged index says %v, which does not name the block", err)
	}
	for range 3 {
		got, err := query(base, rooms, at)
		if err != nil {
			t.Fatalf("damage of two blocks fails all queries: %v", err)
		}
		whole := 0
		for room, n := range got {
			switch {
			case n == 6*60:
				whole++
			case n < 4*60 || n >= 6*60: // of the damaged block everything is lost at most
				t.Errorf("%s has %v samples, want 360, or from 240 in one", room, n)
			}
		}
		if len(got) != 10 || whole != 9 {
			t.Errorf("%d of %d rooms are as they were, want 9 of 10: %v", whole, len(got), got)
		}
	}
	answer, err := instant(base, rooms, at)
	if err != nil || !strings.Contains(string(answer), `"warnings":["block `+filepath.Base(blocks[0])) {
		t.Errorf("no warning of the answer names the block with a damaged chunk (%v): %.500s", err, answer)
	}
	wantExactly(t, "teescope_storage_damaged_chunks", s.scrape(t).sum("teescope_storage_damaged_chunks"), 1)
	if !strings.Contains(s.log.String(), "block="+filepath.Base(blocks[0])) {
		t.Errorf("the log does not name block %s:\n%s", blocks[0], s.log.String())
	}
}

// firstSeries returns where the series section of an index begins. Its table of contents is at the end: six addresses of
// eight bytes, of which the second is that of the series, and a checksum (tsdb/docs/format/index.md of Prometheus).
func firstSeries(t *testing.T, text []byte) int64 {
	t.Helper()
	const toc = 6*8 + 4
	if len(text) < toc {
		t.Fatal("the index is too short")
	}
	at := int64(0)
	for _, b := range text[len(text)-toc+8 : len(text)-toc+16] {
		at = at<<8 | int64(b)
	}
	return (at + 15) / 16 * 16 // a series begins at a multiple of 16
}
