// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/util/annotations"
	"golang.org/x/sys/unix"
)

// maxDamagedChunks is how many damaged chunks of one block are distinguished. A block with more has a damaged disk below it.
const maxDamagedChunks = 10_000

// damages finds damage that the check at the start does not find: bytes that changed within the files of a block.
// Prometheus verifies the checksum of everything that it reads from a block, and fails the query or the compaction.
//
//   - A damaged chunk is read as a chunk without samples, by queries and by compactions. It costs its own samples.
//   - A damaged index costs the block. Queries leave the block out, and the next reload moves it aside.
//   - A damaged chunk of the head costs nothing: the database is opened again and reads the write-ahead log.
type damages struct {
	health *health
	log    *slog.Logger

	mu     sync.Mutex
	chunks map[ulid.ULID]map[chunks.ChunkRef]struct{} // damaged chunks by block
	blocks map[ulid.ULID]error                        // blocks to move aside, and why
}

func newDamages(h *health, log *slog.Logger) *damages {
	return &damages{health: h, log: log, chunks: map[ulid.ULID]map[chunks.ChunkRef]struct{}{}, blocks: map[ulid.ULID]error{}}
}

// chunk counts a damaged chunk.
func (d *damages) chunk(block tsdb.BlockMeta, c chunks.Meta, reason error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.chunks[block.ULID]
	if known == nil {
		known = map[chunks.ChunkRef]struct{}{}
		d.chunks[block.ULID] = known
		d.log.Error("a chunk of a block of the database is damaged: its samples are missing, all others are intact; "+
			"more damaged chunks of this block are only counted",
			"block", block.ULID, "chunk", uint64(c.Ref), "covers", period(c.MinTime, c.MaxTime), "reason", reason,
			"advice", "check the disk, because it has changed data; restore the block from a backup if you have one")
	}
	if _, ok := known[c.Ref]; !ok && len(known) < maxDamagedChunks {
		known[c.Ref] = struct{}{}
		d.health.lostChunk()
	}
}

// index notes that the index of a block is damaged, and returns the error for the query that has met it.
func (d *damages) index(block tsdb.BlockMeta, reason error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.blocks[block.ULID] == nil {
		d.blocks[block.ULID] = reason
	}
	return fmt.Errorf("the index of block %s (%s) is damaged; the block is being moved aside and later answers are without it: %w",
		block.ULID, period(block.MinTime, block.MaxTime), reason)
}

// bad returns whether a block must be moved aside, and how many of its chunks are known to be damaged.
func (d *damages) bad(block ulid.ULID) (aside bool, chunks int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.blocks[block] != nil, len(d.chunks[block])
}

// moveAside moves the blocks with a damaged index out of the database and returns them, so that the database closes them.
// It forgets damage of blocks that exist no longer. The database calls it at each reload, at least once a minute.
func (d *damages) moveAside(dir string, loaded []*tsdb.Block) []ulid.ULID {
	d.mu.Lock()
	defer d.mu.Unlock()
	exists := map[ulid.ULID]bool{}
	var moved []ulid.ULID
	for _, b := range loaded {
		id := b.Meta().ULID
		exists[id] = true
		reason := d.blocks[id]
		if reason == nil {
			continue
		}
		aside, err := setAside(dir, id.String())
		if err != nil {
			d.log.Error("a damaged block cannot be moved aside; answers are without it", "block", id, "reason", err)
			continue
		}
		logSetAside(d.log, id.String(), aside, reason)
		d.health.setAside(1)
		moved = append(moved, id)
		exists[id] = false
	}
	for id := range d.chunks {
		if !exists[id] {
			delete(d.chunks, id)
		}
	}
	for id := range d.blocks {
		if !exists[id] {
			delete(d.blocks, id)
		}
	}
	return moved
}

// damagedSuffix is added to the name of a block that cannot be moved to another directory.
const damagedSuffix = ".damaged"

// setAside moves a block to the directory of damaged blocks, and returns its new name. Landlock forbids a confined process
// to move it to another directory. Such a block gets a name that is not a block's.
func setAside(dir, block string) (string, error) {
	from, aside := filepath.Join(dir, block), filepath.Join(dir, damagedDir, block)
	err := errors.Join(os.MkdirAll(filepath.Dir(aside), 0o750), os.Rename(from, aside))
	if errors.Is(err, unix.EXDEV) {
		aside = from + damagedSuffix
		err = os.Rename(from, aside)
	}
	return aside, err
}

func logSetAside(log *slog.Logger, block, aside string, reason error) {
	log.Error("a block of the database is damaged and was moved aside: its samples are missing, all others are intact",
		"block", block, "covers", coverage(block, aside), "reason", reason, "moved to", aside)
}

// period describes a range of time that is given in milliseconds.
func period(from, to int64) string {
	return time.UnixMilli(from).UTC().Format(time.RFC3339) + " to " + time.UnixMilli(to).UTC().Format(time.RFC3339)
}

// querier is a tsdb.BlockQuerierFunc.
func (d *damages) querier(b tsdb.BlockReader, mint, maxt int64) (storage.Querier, error) {
	block, ok := b.(*tsdb.Block)
	if !ok {
		return tsdb.NewBlockQuerier(checkedHead{b, d.health}, mint, maxt)
	}
	aside, n := d.bad(block.Meta().ULID)
	if aside {
		return storage.NoopQuerier(), nil
	}
	q, err := tsdb.NewBlockQuerier(checkedBlock{block, d}, mint, maxt)
	if err != nil || n == 0 {
		return q, err
	}
	return incompleteQuerier{q, fmt.Errorf("block %s of the database (%s) has %d damaged chunks; their samples are missing",
		block.Meta().ULID, period(block.MinTime(), block.MaxTime()), n)}, nil
}

// incompleteQuerier adds a warning to each answer.
type incompleteQuerier struct {
	storage.Querier
	warning error
}

// Select implements storage.Querier.
func (q incompleteQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	return incompleteSet{q.Querier.Select(ctx, sorted, hints, matchers...), q.warning}
}

type incompleteSet struct {
	storage.SeriesSet
	warning error
}

// Warnings implements storage.SeriesSet.
func (s incompleteSet) Warnings() annotations.Annotations {
	all := annotations.New()
	all.Add(s.warning)
	return all.Merge(s.SeriesSet.Warnings())
}

// checkedBlock is a block whose damage is noted when it is read.
type checkedBlock struct {
	tsdb.BlockReader
	damages *damages
}

// Index implements tsdb.BlockReader.
func (b checkedBlock) Index() (tsdb.IndexReader, error) {
	r, err := b.BlockReader.Index()
	if err != nil {
		return nil, err
	}
	return checkedIndex{r, b.Meta(), b.damages}, nil
}

// Chunks implements tsdb.BlockReader.
func (b checkedBlock) Chunks() (tsdb.ChunkReader, error) {
	r, err := b.BlockReader.Chunks()
	if err != nil {
		return nil, err
	}
	return checkedChunks{r, b.Meta(), b.damages}, nil
}

// checkedHead are the newest samples. Prometheus panics when a chunk of theirs that is on the disk is damaged.
type checkedHead struct {
	tsdb.BlockReader
	health *health
}

// Chunks implements tsdb.BlockReader.
func (b checkedHead) Chunks() (tsdb.ChunkReader, error) {
	r, err := b.BlockReader.Chunks()
	if err != nil {
		return nil, err
	}
	return checkedHeadChunks{r, b.health}, nil
}

type checkedHeadChunks struct {
	tsdb.ChunkReader
	health *health
}

// ChunkOrIterable implements tsdb.ChunkReader.
func (r checkedHeadChunks) ChunkOrIterable(c chunks.Meta) (chunk chunkenc.Chunk, all chunkenc.Iterable, err error) {
	if damage := contained(func() { chunk, all, err = r.ChunkReader.ChunkOrIterable(c) }); damage != nil {
		return nil, nil, r.health.damagedHead(damage)
	}
	return chunk, all, err
}

type checkedChunks struct {
	tsdb.ChunkReader
	block   tsdb.BlockMeta
	damages *damages
}

// ChunkOrIterable implements tsdb.ChunkReader. The reader of a block (chunks.Reader) fails for damage only.
func (r checkedChunks) ChunkOrIterable(c chunks.Meta) (chunkenc.Chunk, chunkenc.Iterable, error) {
	chunk, all, err := r.ChunkReader.ChunkOrIterable(c)
	if err == nil {
		return chunk, all, nil
	}
	r.damages.chunk(r.block, c, err)
	return chunkenc.NewXORChunk(), nil, nil
}

// checkedIndex covers what an index reads and verifies on demand: lists of series and series. Prometheus verifies the
// rest of an index when it opens the block.
type checkedIndex struct {
	tsdb.IndexReader
	block   tsdb.BlockMeta
	damages *damages
}

// checked returns an error of the index as it is when it is not damage.
func (r checkedIndex) checked(err error) error {
	for _, other := range []error{nil, storage.ErrNotFound, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, other) {
			return err
		}
	}
	return r.damages.index(r.block, err)
}

// Postings implements tsdb.IndexReader.
func (r checkedIndex) Postings(ctx context.Context, name string, values ...string) (index.Postings, error) {
	p, err := r.IndexReader.Postings(ctx, name, values...)
	return p, r.checked(err)
}

// PostingsForLabelMatching implements tsdb.IndexReader.
func (r checkedIndex) PostingsForLabelMatching(ctx context.Context, name string, match func(string) bool) index.Postings {
	return r.checkedPostings(r.IndexReader.PostingsForLabelMatching(ctx, name, match))
}

// PostingsForAllLabelValues implements tsdb.IndexReader.
func (r checkedIndex) PostingsForAllLabelValues(ctx context.Context, name string) index.Postings {
	return r.checkedPostings(r.IndexReader.PostingsForAllLabelValues(ctx, name))
}

func (r checkedIndex) checkedPostings(p index.Postings) index.Postings {
	if err := r.checked(p.Err()); err != nil {
		return index.ErrPostings(err)
	}
	return p
}

// Series implements tsdb.IndexReader.
func (r checkedIndex) Series(ref storage.SeriesRef, builder *labels.ScratchBuilder, chks *[]chunks.Meta) error {
	return r.checked(r.IndexReader.Series(ref, builder, chks))
}

// compactor is a tsdb.NewCompactorFunc. It has the options of tsdb.Open.
func (d *damages) compactor(ctx context.Context, reg prometheus.Registerer, log *slog.Logger, ranges []int64, pool chunkenc.Pool, o *tsdb.Options) (tsdb.Compactor, error) {
	c, err := tsdb.NewLeveledCompactorWithOptions(ctx, reg, log, ranges, pool, tsdb.LeveledCompactorOptions{
		MaxBlockChunkSegmentSize:    o.MaxBlockChunkSegmentSize,
		EnableOverlappingCompaction: o.EnableOverlappingCompaction,
		PD:                          o.PostingsDecoderFactory,
		UseUncachedIO:               o.UseUncachedIO,
		FloatChunkEncoding:          func() chunkenc.Encoding { return o.FloatChunkEncoding },
		// A block with a damaged index would fail each compaction until it is moved aside.
		BlockExcludeFilter: func(m *tsdb.BlockMeta) bool { aside, _ := d.bad(m.ULID); return aside },
	})
	return checkedCompactor{c, d}, err
}

// checkedCompactor leaves damaged chunks out of the blocks that it writes.
type checkedCompactor struct {
	*tsdb.LeveledCompactor
	damages *damages
}

// Compact implements tsdb.Compactor.
func (c checkedCompactor) Compact(dest string, dirs []string, open []*tsdb.Block) ([]ulid.ULID, error) {
	return c.CompactWithBlockPopulator(dest, dirs, open, checkedPopulator{damages: c.damages})
}

// Write implements tsdb.Compactor. It writes the head, and blocks from which samples were deleted.
func (c checkedCompactor) Write(dest string, b tsdb.BlockReader, mint, maxt int64, base *tsdb.BlockMeta) (ids []ulid.ULID, err error) {
	if block, ok := b.(*tsdb.Block); ok {
		return c.LeveledCompactor.Write(dest, checkedBlock{block, c.damages}, mint, maxt, base)
	}
	if damage := contained(func() { ids, err = c.LeveledCompactor.Write(dest, b, mint, maxt, base) }); damage != nil {
		return nil, c.damages.health.damagedHead(damage)
	}
	return ids, err
}

type checkedPopulator struct {
	tsdb.DefaultBlockPopulator
	damages *damages
}

// PopulateBlock implements tsdb.BlockPopulator.
func (p checkedPopulator) PopulateBlock(ctx context.Context, m *tsdb.CompactorMetrics, log *slog.Logger, pool chunkenc.Pool,
	merge storage.VerticalChunkSeriesMergeFunc, blocks []tsdb.BlockReader, meta *tsdb.BlockMeta, iw tsdb.IndexWriter, cw tsdb.ChunkWriter,
	postings tsdb.IndexReaderPostingsFunc,
) error {
	checked := make([]tsdb.BlockReader, len(blocks))
	for i, b := range blocks {
		checked[i] = checkedBlock{b, p.damages}
	}
	return p.DefaultBlockPopulator.PopulateBlock(ctx, m, log, pool, merge, checked, meta, iw, cw, postings)
}
