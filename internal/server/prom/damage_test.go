// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"

	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// heat is what the tests ask about: five series.
const heat = "sum(count_over_time(heat[7h]))"

// threeBlocks returns a data directory with three blocks of two hours, and the end of the last.
func threeBlocks(t *testing.T) (dir string, end time.Time) {
	t.Helper()
	var log logtest.Log
	dir = t.TempDir()
	s := New(options(dir, &log))
	if err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	end = time.Now().Truncate(6 * time.Hour).Add(-6 * time.Hour) // Prometheus makes blocks of six hours of these
	for _, hours := range []time.Duration{6, 4, 2} {
		nextBlock(t, s, end.Add(-hours*time.Hour))
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return dir, end
}

// nextBlock stores two hours in a block.
func nextBlock(t *testing.T, s *Server, from time.Time) {
	t.Helper()
	stored(t, s, from, 120)
	block(t, s.db, from.Add(2*time.Hour))
}

// stored stores a sample a minute in five series.
func stored(t *testing.T, s *Server, from time.Time, minutes int) {
	t.Helper()
	a := s.db.Appender(t.Context())
	for room := range 5 {
		series := labels.FromStrings("__name__", "heat", "room", fmt.Sprint(room))
		for minute := range minutes {
			at := from.Add(time.Duration(minute) * time.Minute)
			if _, err := a.Append(0, series, at.UnixMilli(), float64(minute*room)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := a.Commit(); err != nil {
		t.Fatal(err)
	}
}

// complaints returns the warnings and the error of the query.
func complaints(t *testing.T, s *Server, at time.Time) (warnings []string, failure string) {
	t.Helper()
	path := "/api/v1/query?" + url.Values{"query": {heat}, "time": {fmt.Sprint(at.Unix())}}.Encode()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	var all struct {
		Warnings []string
		Error    string
	}
	if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	return all.Warnings, all.Error
}

// firstOf opens the first of the blocks in a directory and returns its name, its first series and the first chunk of that.
func firstOf(t *testing.T, dir string) (id string, series storage.SeriesRef, first chunks.Meta) {
	t.Helper()
	var found *tsdb.Block
	names, err := filepath.Glob(filepath.Join(dir, "tsdb", "0*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := tsdb.OpenBlock(nil, name, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if found == nil || b.MinTime() < found.MinTime() {
			found = b
		}
	}
	r, err := found.Index()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	name, value := index.AllPostingsKey()
	all, err := r.Postings(t.Context(), name, value)
	if err != nil || !all.Next() {
		t.Fatal(err)
	}
	var metas []chunks.Meta
	var builder labels.ScratchBuilder
	if err := r.Series(all.At(), &builder, &metas); err != nil {
		t.Fatal(err)
	}
	return found.String(), all.At(), metas[0]
}

// flip inverts the bits of one byte of a file, which may be mapped.
func flip(t *testing.T, file string, at int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	one := make([]byte, 1)
	if _, err := f.ReadAt(one, at); err != nil {
		t.Fatal(err)
	}
	one[0] ^= 0xff
	if _, err := f.WriteAt(one, at); err != nil {
		t.Fatal(err)
	}
}

// A byte of a chunk changes. The chunk costs its own samples, in queries and when blocks are made into a larger one. The
// log names the block, and later answers have a warning.
func TestFlippedByteInAChunkCostsThatChunk(t *testing.T) {
	dir, end := threeBlocks(t)
	id, _, chunk := firstOf(t, dir)
	// Behind the first chunk of the file there are others, so the check at the start does not find it.
	_, at := chunks.BlockChunkRef(chunk.Ref).Unpack()
	flip(t, filepath.Join(dir, "tsdb", id, "chunks", "000001"), int64(at)+10)
	var log logtest.Log
	o := options(dir, &log)
	o.RetentionTime = 10 * 24 * time.Hour // a block covers at most a tenth of it
	s := New(o)
	if err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown(t.Context()) })
	if n := len(s.db.Blocks()); n != 3 {
		t.Fatalf("%d blocks, want 3:\n%s", n, log.String())
	}
	want := fmt.Sprint(5*6*60 - (chunk.MaxTime-chunk.MinTime)/60_000 - 1)
	for range 2 {
		if got := answer(t, s, end, heat); got != want {
			t.Errorf("%s samples are left, want %s", got, want)
		}
	}
	if warnings, _ := complaints(t, s, end); len(warnings) != 1 || !strings.Contains(warnings[0], id) {
		t.Errorf("no warning names the block: %q", warnings)
	}
	if n := strings.Count(log.String(), "a chunk of a block of the database is damaged"); n != 1 || !strings.Contains(log.String(), id) {
		t.Errorf("the log names the block %d times:\n%s", n, log.String())
	}
	if state := s.Status().Storage(); state.Lost != 1 || state.Damaged != 0 || state.Err != nil {
		t.Errorf("the state is %+v", state)
	}
	// A newer block lets the database compact the three into one.
	nextBlock(t, s, end)
	if err := s.db.Compact(t.Context()); err != nil {
		t.Fatalf("a damaged chunk prevents compaction: %v", err)
	}
	if got := answer(t, s, end.Add(-time.Minute), heat); got != want {
		t.Errorf("%s samples are left after a compaction, want %s", got, want)
	}
	for _, b := range s.db.Blocks() {
		if b.String() == id {
			t.Error("the blocks were not compacted")
		}
	}
	nextBlock(t, s, end.Add(2*time.Hour))
	if len(s.damages.chunks) != 0 {
		t.Errorf("damage of blocks that are gone is kept: %v", s.damages.chunks)
	}
}

// A byte of an index changes. The query that meets it fails and names the block. Later ones are without the block, which
// the next reload moves aside.
func TestFlippedByteInAnIndexCostsThatBlock(t *testing.T) {
	dir, end := threeBlocks(t)
	id, series, _ := firstOf(t, dir)
	flip(t, filepath.Join(dir, "tsdb", id, "index"), int64(series)*16+2) //nolint:gosec // small: a reference counts 16 bytes
	var log logtest.Log
	s := New(options(dir, &log))
	if err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown(t.Context()) })
	if _, failure := complaints(t, s, end); !strings.Contains(failure, id) {
		t.Errorf("the error does not name the block: %q", failure)
	}
	const want = "1200" // of two blocks
	if got := answer(t, s, end, heat); got != want {
		t.Errorf("%s samples are left, want %s", got, want)
	}
	nextBlock(t, s, end) // the database reads its list of blocks again
	if _, err := os.Stat(filepath.Join(dir, "tsdb", damagedDir, id, "index")); err != nil {
		t.Errorf("the block is not aside: %v", err)
	}
	if state := s.Status().Storage(); state.Damaged != 1 || !strings.Contains(log.String(), id) {
		t.Errorf("the state is %+v, the log\n%s", state, log.String())
	}
	if got := answer(t, s, end.Add(-time.Minute), heat); got != want {
		t.Errorf("%s samples are left after the move, want %s", got, want)
	}
}

// Errors that are not damage cost nothing.
func TestAbandonedQueriesAreNoDamage(t *testing.T) {
	var log logtest.Log
	d := newDamages(newHealth(options("", &log).Log), options("", &log).Log)
	r := checkedIndex{damages: d}
	for _, err := range []error{nil, storage.ErrNotFound, context.Canceled, fmt.Errorf("waiting: %w", context.DeadlineExceeded)} {
		if got := r.checked(err); !errors.Is(got, err) || len(d.blocks) != 0 {
			t.Errorf("%v is taken for damage: %v", err, got)
		}
	}
	if err := r.checked(errors.New("invalid checksum")); err == nil || len(d.blocks) != 1 {
		t.Errorf("a wrong checksum is no damage: %v", err)
	}
}

// A byte of a chunk of the newest samples changes. The query that meets it fails, the database is opened again, and no
// sample is missing. Prometheus' own compaction of such a chunk would end the process.
func TestFlippedByteInTheHeadCostsNothing(t *testing.T) {
	for name, meet := range map[string]func(s *Server, end time.Time) string{
		"a query": func(s *Server, end time.Time) string {
			_, failure := complaints(t, s, end)
			return failure
		},
		"a compaction": func(s *Server, end time.Time) string {
			return fmt.Sprint(s.db.CompactHead(tsdb.NewRangeHead(s.db.Head(), s.db.Head().MinTime(), end.UnixMilli())))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log logtest.Log
			dir, end := t.TempDir(), time.Now().Truncate(time.Minute)
			s := New(options(dir, &log))
			if err := s.Init(t.Context()); err != nil {
				t.Fatal(err)
			}
			stored(t, s, end.Add(-150*time.Minute), 150)
			s.db.ForceHeadMMap()
			if err := s.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			s, stop := start(t, options(dir, &log))
			defer stop()
			flip(t, filepath.Join(dir, "tsdb", "chunks_head", "000001"), 100)
			if failure := meet(s, end); !strings.Contains(failure, "write-ahead log") {
				t.Errorf("the failure does not say what happens: %q", failure)
			}
			waittest.Until(t, "queries to succeed again", func() bool {
				_, failure := complaints(t, s, end)
				return failure == ""
			})
			if got := answer(t, s, end, heat); got != "750" {
				t.Errorf("%s samples are left, want 750", got)
			}
		})
	}
}

// Landlock answers EXDEV when a block is moved to another directory, as a directory on another disk does.
func TestBlocksAreRenamedWhereTheyCannotBeMoved(t *testing.T) {
	dir, block := t.TempDir(), ulid.Make().String()
	other, err := os.MkdirTemp("/dev/shm", "damaged")
	if err != nil {
		t.Skipf("there is no other file system: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	err = errors.Join(os.Symlink(other, filepath.Join(dir, damagedDir)), os.Mkdir(filepath.Join(dir, block), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	aside, err := setAside(dir, block)
	if err != nil || aside != filepath.Join(dir, block+damagedSuffix) {
		t.Fatalf("%s is moved to %s: %v", block, aside, err)
	}
	if n, err := setDamagedAside(dir, slog.New(slog.DiscardHandler)); err != nil || n != 0 {
		t.Errorf("the next start takes it for a block: %d, %v", n, err)
	}
}
