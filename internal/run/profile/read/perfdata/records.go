// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
)

// Types of records: of the kernel, and of perf from 64 on.
const (
	recordMmap        = 1
	recordLost        = 2
	recordComm        = 3
	recordExit        = 4
	recordFork        = 7
	recordSample      = 9
	recordMmap2       = 10
	recordLostSamples = 13
	recordKsymbol     = 17
	ofPerf            = 64
	recordAttr        = 64
	recordTracing     = 66
	recordBuildID     = 67
	recordRound       = 68
	recordAuxtrace    = 71
	recordUpdate      = 78
	recordFeature     = 80
	recordCompressed  = 81
	recordCompressed2 = 83
)

// Bits of the field misc.
const (
	modeMask     = 7
	modeUnknown  = 0
	modeKernel   = 1
	modeUser     = 2
	miscExec     = 1 << 13 // of COMM and FORK
	miscBuildID  = 1 << 14 // of MMAP2
	miscHasSize  = 1 << 15 // of a record of a build ID
	ksymbolGone  = 1       // of the flags of KSYMBOL (PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER)
	headerBytes  = 8
	featureNames = 12
	featureIDs   = 2
	featureOS    = 4
	featureArch  = 6
)

type record struct {
	kind uint32
	misc uint16
	body []byte
}

// bufferBytes is the size of a buffer of records, of which the largest has 64 KiB.
const bufferBytes = 256 << 10

// read reads a record. The body is in the buffer of in, so it is valid until the next one.
func (r *reader) read(in *bufio.Reader) (record, error) {
	h, err := in.Peek(headerBytes)
	if err != nil {
		if len(h) > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return record{}, err
	}
	rec := record{kind: r.order.Uint32(h), misc: r.order.Uint16(h[4:])}
	size := int(r.order.Uint16(h[6:]))
	if size < headerBytes {
		return rec, fmt.Errorf("a record of %d bytes at byte %d: the file is damaged", size, r.in.position())
	}
	whole, err := in.Peek(size)
	if err != nil {
		return rec, io.ErrUnexpectedEOF
	}
	rec.body = whole[headerBytes:]
	_, err = in.Discard(size) // it is in the buffer
	return rec, err
}

// all reads the data.
func (r *reader) all() error {
	data := &io.LimitedReader{R: r.in, N: 1 << 62}
	if !r.pipe && r.data > 0 {
		data.N = int64(min(r.data, 1<<62))
	}
	in := bufio.NewReaderSize(data, bufferBytes)
	r.in.buffered = in
	for {
		packed, err := r.plain(in)
		if err == nil && packed != nil {
			err = r.unpack(in, packed)
		}
		if errors.Is(err, io.EOF) && (r.data == 0 || data.N == 0) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// plain handles records until one is compressed, and returns its content.
func (r *reader) plain(in *bufio.Reader) ([]byte, error) {
	for {
		rec, err := r.read(in)
		if err != nil {
			return nil, err
		}
		switch rec.kind {
		case recordCompressed:
			return bytes.Clone(rec.body), nil
		case recordCompressed2: // with the number of bytes, because it is padded
			if len(rec.body) >= 8 {
				if n := r.order.Uint64(rec.body); n <= uint64(len(rec.body)-8) {
					return bytes.Clone(rec.body[8 : 8+n]), nil
				}
			}
			return nil, errors.New("a compressed record is damaged")
		}
		if err := r.record(rec, in); err != nil {
			return nil, err
		}
	}
}

// unpacker gives the contents of compressed records to the decompressor. All are one stream, and a record may be in two of
// them. The next record is passed on only after all decompressed records were handled. This keeps the order of all
// records.
type unpacker struct {
	r    *reader
	in   *bufio.Reader
	left []byte
	err  error // of a record in between
}

func (u *unpacker) Read(b []byte) (int, error) {
	for len(u.left) == 0 {
		if u.left, u.err = u.r.plain(u.in); u.err != nil {
			return 0, io.EOF
		}
	}
	n := copy(b, u.left)
	u.left = u.left[n:]
	return n, nil
}

// unpack handles compressed records, and others between them, to the end.
func (r *reader) unpack(in *bufio.Reader, first []byte) error {
	u := &unpacker{r: r, in: in, left: first}
	d, err := zstd.NewReader(u, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxUnpacked))
	if err != nil {
		return fmt.Errorf("decompressing: %w", err)
	}
	defer d.Close()
	limited := &io.LimitedReader{R: d, N: maxUnpacked}
	content := bufio.NewReaderSize(limited, bufferBytes)
	for {
		rec, err := r.read(content)
		switch {
		case limited.N == 0:
			return fmt.Errorf("more than %d GiB of compressed records, %w", maxUnpacked>>30, profile.ErrLimit)
		case u.err != nil && err != nil:
			return u.err
		case err != nil:
			return fmt.Errorf("decompressing: %w", err)
		case rec.kind == recordCompressed || rec.kind == recordCompressed2:
			return errors.New("a compressed record within another")
		}
		if err := r.record(rec, content); err != nil {
			return err
		}
	}
}

// record handles one record. What follows a record of trace data is skipped.
func (r *reader) record(rec record, in io.Reader) error {
	b := rec.body
	switch rec.kind {
	case recordTracing:
		if len(b) < 4 {
			return nil
		}
		return skip(in, (uint64(r.order.Uint32(b))+7)&^7)
	case recordAuxtrace:
		if len(b) < 8 {
			return nil
		}
		return skip(in, r.order.Uint64(b))
	case recordAttr:
		return r.attrRecord(b)
	case recordBuildID:
		return r.buildID(rec.misc, b)
	case recordRound:
		return r.round()
	case recordUpdate:
		if len(b) > 16 && r.order.Uint64(b) == 2 && r.ids[r.order.Uint64(b[8:])] != nil { // PERF_EVENT_UPDATE__NAME
			e := r.ids[r.order.Uint64(b[8:])]
			e.Name = text.Label(r.texts.of(b[16:]))
		}
		return nil
	case recordFeature:
		if len(b) < 8 {
			return nil
		}
		return r.feature(int(r.order.Uint64(b)&0xffff), b[8:])
	}
	if rec.kind >= ofPerf {
		return nil
	}
	return r.enqueue(rec)
}

func skip(in io.Reader, n uint64) error {
	if n > 1<<62 {
		return errors.New("trace data of an impossible length")
	}
	got, err := io.CopyN(io.Discard, in, int64(n))
	if err != nil && got < int64(n) {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// attrRecord reads an event of a stream: an attr and its IDs.
func (r *reader) attrRecord(b []byte) error {
	if len(b) < 64 {
		return nil
	}
	size := max(64, int(r.order.Uint32(b[4:])))
	if len(b) < size {
		return errors.New("an event is damaged")
	}
	e, err := r.event(b[:size])
	if err != nil {
		return err
	}
	return r.identify(e, b[size:])
}

// str returns the text before the first byte of 0.
func str(b []byte) string {
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(text)
}

// buildID reads PID, ID of up to 20 bytes, its size, and a path.
func (r *reader) buildID(misc uint16, b []byte) error {
	const id, size, path = 4, 24, 28
	if len(b) <= path {
		return nil
	}
	n := 20
	if misc&miscHasSize != 0 && b[size] > 0 && b[size] <= 20 {
		n = int(b[size])
	}
	if len(r.rec.BuildIDs) >= maxBuildIDs {
		return fmt.Errorf("more than %d build IDs, %w", maxBuildIDs, profile.ErrLimit)
	}
	r.rec.BuildIDs[r.texts.of(b[path:])] = hex.EncodeToString(b[id : id+n])
	return r.texts.err()
}

// features reads what follows the data: a table of sections, and these.
func (r *reader) features() error {
	data, err := io.ReadAll(io.LimitReader(r.in, maxHead+1))
	if err != nil {
		return err
	}
	if len(data) > maxHead {
		return nil // trace data of a tracer, which comes first: names and build IDs are unknown
	}
	if r.data == 0 || len(data) < 16*len(r.set) {
		return nil
	}
	base := uint64(r.in.at) - uint64(len(data))
	for i, number := range r.set {
		s := section{r.order.Uint64(data[16*i:]), r.order.Uint64(data[16*i+8:])}
		if s.at < base {
			continue
		}
		s.at -= base
		if err := r.feature(number, part(data, s)); err != nil {
			return err
		}
	}
	return nil
}

// feature reads a feature section that is used here, and ignores others.
func (r *reader) feature(number int, b []byte) error {
	switch number {
	case featureArch:
		r.rec.Arch, _ = r.text(b)
	case featureOS:
		r.rec.Release, _ = r.text(b)
	case featureIDs:
		for len(b) >= headerBytes {
			size := int(r.order.Uint16(b[6:]))
			if size < headerBytes || size > len(b) {
				return nil
			}
			if err := r.buildID(r.order.Uint16(b[4:]), b[headerBytes:size]); err != nil {
				return err
			}
			b = b[size:]
		}
	case featureNames:
		r.names(b)
	}
	return nil
}

// text reads a length and so many bytes, and returns what follows.
func (r *reader) text(b []byte) (string, []byte) {
	if len(b) < 4 {
		return "", nil
	}
	n := r.order.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return "", nil
	}
	return str(b[4 : 4+n]), b[4+n:]
}

// names reads the names of the events, in their order: an attr, the number of IDs, a text, the IDs.
func (r *reader) names(b []byte) {
	if len(b) < 8 {
		return
	}
	count, size := r.order.Uint32(b), uint64(r.order.Uint32(b[4:]))
	b = b[8:]
	for i := range min(int(count), len(r.rec.Events)) {
		if uint64(len(b)) < size+4 {
			return
		}
		ids := uint64(r.order.Uint32(b[size:])) * 8
		name, rest := r.text(b[size+4:])
		if name == "" || uint64(len(rest)) < ids {
			return
		}
		r.rec.Events[i].Name = text.Label(name)
		b = rest[ids:]
	}
}
