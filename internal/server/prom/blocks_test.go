// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/teescope/teescope/internal/lib/logtest"
)

// A clock was three years ahead for some hours. The blocks of that time must not delete what was stored before.
func TestClockAheadDeletesNothing(t *testing.T) {
	var log logtest.Log
	o := options(t.TempDir(), &log)
	o.RetentionTime = 10 * time.Hour
	s := New(o)
	if err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown(t.Context()) })
	now := time.Now().Truncate(2 * time.Hour)
	record(t, s.db, now.Add(-4*time.Hour), now)
	ahead := now.AddDate(3, 0, 0)
	record(t, s.db, ahead, ahead.Add(6*time.Hour))
	if err := s.db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := answer(t, s, now, "count_over_time(requests_total[5h])"); got != "240" {
		t.Errorf("%s samples from before are left, want 240", got)
	}
	if blocks := s.db.Blocks(); blocks[len(blocks)-1].MaxTime() < ahead.UnixMilli() {
		t.Fatal("the clock ahead made no block")
	}
}

func TestRetentionCountsStoredTime(t *testing.T) {
	const hour = int64(time.Hour / time.Millisecond)
	blocks := func(ranges ...[2]int64) []tsdb.BlockMeta {
		var all []tsdb.BlockMeta
		for _, r := range ranges {
			all = append(all, tsdb.BlockMeta{MinTime: r[0] * hour, MaxTime: r[1] * hour})
		}
		return all
	}
	for name, tt := range map[string]struct {
		blocks []tsdb.BlockMeta
		gone   int
	}{
		"none":                        {nil, 0},
		"the newest is always kept":   {blocks([2]int64{0, 5000}), 0},
		"without gaps as Prometheus":  {blocks([2]int64{90, 110}, [2]int64{10, 90}, [2]int64{0, 10}), 1},
		"just within":                 {blocks([2]int64{91, 110}, [2]int64{11, 91}, [2]int64{0, 11}), 0},
		"a gap of years counts 10 h":  {blocks([2]int64{30000, 30080}, [2]int64{0, 80}), 0},
		"stored time and a gap":       {blocks([2]int64{30000, 30091}, [2]int64{0, 80}), 1},
		"overlapping blocks are once": {blocks([2]int64{50, 100}, [2]int64{40, 90}, [2]int64{0, 45}), 0},
	} {
		if got := len(beyond(tt.blocks, 100*time.Hour)); got != tt.gone {
			t.Errorf("%s: %d blocks are deleted, want %d", name, got, tt.gone)
		}
	}
}

// Any file of a block is cut at any offset, or removed. The database opens without that block and names it.
func TestDamagedBlockCostsThatBlock(t *testing.T) {
	var log logtest.Log
	dir := t.TempDir()
	o := options(dir, &log)
	s := New(o)
	if err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(2 * time.Hour)
	for _, hours := range []time.Duration{8, 6, 4} {
		record(t, s.db, now.Add(-hours*time.Hour), now.Add((2-hours)*time.Hour))
		block(t, s.db, now.Add((2-hours)*time.Hour))
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 30 {
		copied := t.TempDir()
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		name := damage(t, filepath.Join(copied, "tsdb"), random)
		var log logtest.Log
		s := New(options(copied, &log))
		if err := s.Init(t.Context()); err != nil {
			t.Fatalf("round %d, %s: %v", round, name, err)
		}
		if n := len(s.db.Blocks()); n != 2 {
			t.Errorf("round %d, %s: %d blocks are left, want 2", round, name, n)
		}
		id := strings.Split(name, "/")[0]
		if s.Status().Storage().Damaged != 1 || !strings.Contains(log.String(), id) {
			t.Errorf("round %d, %s: %+v, log:\n%s", round, name, s.Status().Storage(), log.String())
		}
		if _, err := os.Stat(filepath.Join(copied, "tsdb", damagedDir, id)); err != nil {
			t.Error(err)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// damage cuts a file of a block at a random offset, and returns its name below the directory.
func damage(t *testing.T, dir string, random *rand.Rand) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, e := range entries {
		if _, err := ulid.ParseStrict(e.Name()); err == nil {
			blocks = append(blocks, e.Name())
		}
	}
	name := filepath.Join(blocks[random.IntN(len(blocks))], []string{"index", "meta.json", "chunks/000001"}[random.IntN(3)])
	info, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, name), random.Int64N(info.Size())); err != nil {
		t.Fatal(err)
	}
	return name
}

// A process that may open no more files must not take its blocks for damaged.
func TestErrorsOfTheProcessAreNoDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ulid.Make().String())
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := checkBlock(dir, slog.New(slog.DiscardHandler)); err == nil || passing(err) {
		t.Errorf("an empty block: %v", err)
	}
	if !passing(&os.PathError{Op: "open", Path: dir, Err: os.ErrPermission}) {
		t.Error("a block that may not be read counts as damaged")
	}
}
