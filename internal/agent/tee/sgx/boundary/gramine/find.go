// SPDX-License-Identifier: Apache-2.0

package gramine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/teescope/teescope/internal/agent/executable"
)

// Gramine counts by three instructions `lock incq %gs:OFFSET` (host_entry.S) with consecutive offsets.
var lockIncGS = []byte{0x65, 0xf0, 0x48, 0xff, 0x04, 0x25}

// functions are the addresses of functions of Gramine, 0 if there is no symbol.
type functions struct {
	start, end uint64 // in which threads enter the enclave first, and end
	reset      uint64 // which sets the counters of the thread to 0 before it ends (host_thread.c)
}

// functionsOf finds the functions.
func functionsOf(p *executable.Program) (of functions, err error) {
	err = p.Functions(func(f executable.Function) {
		switch f.Name {
		case "sgx_ecall":
			of.start = f.Address
		case "thread_exit":
			of.end = f.Address
		case "update_sgx_stats_on_exit":
			of.reset = f.Address
		}
	})
	return of, err
}

// findLayout finds the offsets of the counters. The control block of a thread (pal_tcb.h, struct pal_host_tcb)
// has consecutive counters: EENTERs, EEXITs, AEXs and two kinds of signals. The code increments the first three.
func findLayout(p *executable.Program) (*layout, error) {
	found := map[uint32]bool{}
	const mostCode = 64 << 20 // bytes; Gramine's loader has 0.3 MB
	err := p.Code(mostCode, func(text *io.SectionReader, _ uint64) error { return scanIncrements(text, found) })
	if err != nil {
		return nil, err
	}
	const most = 1 << 12 // bytes of a control block
	for first := range found {
		if len(found) == 3 && found[first+8] && found[first+16] && first%8 == 0 && first >= 8 && first < most {
			l := &layout{}
			for i := range l.Offsets {
				l.Offsets[i] = first + 8*uint32(i)
			}
			return l, nil
		}
	}
	return nil, errors.New("no counters of EENTER, EEXIT and AEX in this version of Gramine")
}

func scanIncrements(code io.Reader, found map[uint32]bool) error {
	const most = 16 // of offsets: with more it is not Gramine
	length := len(lockIncGS) + 4
	buffer, left := make([]byte, executable.Chunk), 0
	for {
		n, err := code.Read(buffer[left:])
		text := buffer[:left+n]
		for len(found) < most {
			at := bytes.Index(text, lockIncGS)
			if at < 0 || at+length > len(text) {
				break
			}
			found[binary.LittleEndian.Uint32(text[at+len(lockIncGS):])] = true
			text = text[at+length:]
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading code: %w", err)
		}
		left = copy(buffer, text[max(0, len(text)-length+1):])
	}
}
