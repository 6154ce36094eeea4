// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/quietlog"
)

// damagedDir is the subdirectory of the database to which damaged blocks are moved.
const damagedDir = "damaged"

// setDamagedAside moves damaged blocks out of the way and returns how many. One damaged block would otherwise prevent the
// start.
func setDamagedAside(dir string, log *slog.Logger) (int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, &openError{Dir: dir, Err: err}
	}
	n := 0
	for _, e := range entries {
		if _, err := ulid.ParseStrict(e.Name()); err != nil || !e.IsDir() {
			continue
		}
		reason := checkBlock(filepath.Join(dir, e.Name()), log)
		if reason == nil || passing(reason) {
			continue
		}
		aside, err := setAside(dir, e.Name())
		if err != nil {
			return n, &openError{Dir: dir, Err: fmt.Errorf("moving the damaged block %s aside: %w", e.Name(), err)}
		}
		n++
		logSetAside(log, e.Name(), aside, reason)
	}
	return n, nil
}

// passing reports whether an error is temporary and not damage of the block: too many open files, too little memory, or
// no permission.
func passing(err error) bool {
	for _, other := range []error{fs.ErrPermission, unix.EMFILE, unix.ENFILE, unix.ENOMEM} {
		if errors.Is(err, other) {
			return true
		}
	}
	return false
}

// maxMeta bounds the description of a block, in bytes. It grows with the blocks that were merged into it.
const maxMeta = 16 << 20

// coverage describes the time range of a block.
func coverage(name, dir string) string {
	var meta struct{ MinTime, MaxTime int64 }
	if text, err := inputfile.ReadOwn(filepath.Join(dir, "meta.json"), maxMeta); err == nil && json.Unmarshal(text, &meta) == nil && meta.MaxTime > 0 {
		return period(meta.MinTime, meta.MaxTime)
	}
	if id, err := ulid.ParseStrict(name); err == nil {
		return "a time before " + ulid.Time(id.Time()).UTC().Format(time.RFC3339)
	}
	return "unknown"
}

// checkBlock opens a block as Prometheus does and reads its last chunk. A block whose files were cut off has no readable
// last chunk. Reading all chunks would take minutes in a large database.
func checkBlock(dir string, log *slog.Logger) (err error) {
	b, err := tsdb.OpenBlock(quietlog.New(log, "tsdb"), dir, nil, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	var read error
	if p := contained(func() { read = readLast(b) }); p != nil {
		return p // the reader has a bug with this damage
	}
	return read
}

// readLast reads the chunks of the last series.
func readLast(b *tsdb.Block) error {
	last, err := lastSeries(b)
	if err != nil || last == 0 {
		return err
	}
	return readChunks(b, last)
}

// lastSeries returns the series whose chunks are at the end of the block's files, or 0 in an empty block.
func lastSeries(b *tsdb.Block) (last storage.SeriesRef, err error) {
	r, err := b.Index()
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Close() }() // it only counts readers
	name, value := index.AllPostingsKey()
	all, err := r.Postings(context.Background(), name, value)
	if err != nil {
		return 0, err
	}
	for all.Next() {
		last = all.At()
	}
	return last, all.Err()
}

func readChunks(b *tsdb.Block, series storage.SeriesRef) error {
	r, err := b.Index()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // it only counts readers
	var metas []chunks.Meta
	var builder labels.ScratchBuilder
	if err := r.Series(series, &builder, &metas); err != nil {
		return err
	}
	c, err := b.Chunks()
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	for _, m := range metas {
		if _, _, err := c.ChunkOrIterable(m); err != nil {
			return err
		}
	}
	return nil
}

// maxGap is how much of a time without samples counts as age, at most: a tenth of the retention, up to a day.
func maxGap(retention time.Duration) int64 { return min(24*time.Hour, retention/10).Milliseconds() }

// obsolete returns the blocks to delete: blocks that were compacted into others, blocks beyond the retention time, and
// blocks beyond the retention size. db is nil while it is being opened.
//
// Prometheus' own rule compares the newest sample with the end of each block. A clock that is set ahead by years, for two
// hours, would delete everything. So the age of a block is the time for which newer blocks have samples. A time without
// samples counts as maxGap at most.
func obsolete(blocks []*tsdb.Block, db *tsdb.DB, retention time.Duration) map[ulid.ULID]struct{} {
	gone := map[ulid.ULID]struct{}{}
	slices.SortFunc(blocks, func(a, b *tsdb.Block) int { return cmp.Compare(b.Meta().MaxTime, a.Meta().MaxTime) })
	metas := make([]tsdb.BlockMeta, len(blocks))
	for i, b := range blocks {
		if metas[i] = b.Meta(); metas[i].Compaction.Deletable {
			gone[metas[i].ULID] = struct{}{}
		}
	}
	for _, m := range beyond(metas, retention) {
		gone[m.ULID] = struct{}{}
	}
	if db != nil {
		for id := range tsdb.BeyondSizeRetention(db, blocks) {
			gone[id] = struct{}{}
		}
	}
	return gone
}

// beyond returns the blocks that are older than the retention. They are sorted from the newest to the oldest.
func beyond(blocks []tsdb.BlockMeta, retention time.Duration) []tsdb.BlockMeta {
	if retention <= 0 || len(blocks) == 0 {
		return nil
	}
	age, from := int64(0), blocks[0].MaxTime
	for i, b := range blocks {
		if gap := from - b.MaxTime; gap > 0 {
			age += min(gap, maxGap(retention))
			from = b.MaxTime
		}
		if i > 0 && age >= retention.Milliseconds() {
			return blocks[i:]
		}
		if b.MinTime < from {
			age += from - b.MinTime
			from = b.MinTime
		}
	}
	return nil
}
