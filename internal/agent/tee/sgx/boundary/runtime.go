// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// direction is what a call counts as.
type direction uint8

const (
	ecall      direction = iota
	switchless           // an ECALL that a worker thread inside may take over
	ocall
	enter // EENTER for an ECALL, where that is a function of its own
)

// spot is a function that is probed.
type spot struct {
	direction direction
	role      role
	name      string // of the call; empty where the argument tells it
}

// runtime is a kind of untrusted runtime: in which files its functions are, and what they mean.
type runtime struct {
	name string // as the label source begins
	spot func(symbol string) (spot, bool)
	// crossings are the directions each of which is one EENTER and one EEXIT.
	crossings []direction
}

var (
	sdk = &runtime{name: "sdk", crossings: []direction{ecall, ocall}, spot: func(symbol string) (spot, bool) {
		switch symbol {
		case "sgx_ecall":
			return spot{ecall, roleSDKECall, ""}, true
		case "sgx_ecall_switchless":
			return spot{switchless, roleSDKECall, ""}, true
		}
		return spot{}, false // OCALLs are found through the table that an ECALL passes along
	}}
	openEnclave = &runtime{name: "openenclave", crossings: []direction{enter, ocall}, spot: func(symbol string) (spot, bool) {
		switch symbol {
		case "oe_ecall":
			return spot{ecall, roleOEECall, ""}, true
		// On Linux the function is called __morestack, so that debuggers accept its stack (asmdefs.h).
		case "oe_enter", "oe_vdso_enter", "__morestack":
			return spot{enter, rolePlain, ""}, true
		case "__oe_dispatch_ocall":
			return spot{ocall, roleOEDispatch, ""}, true
		}
		return spot{}, false
	}}
	occlum = &runtime{name: "occlum", crossings: []direction{ecall, ocall}, spot: func(symbol string) (spot, bool) {
		if name, ok := strings.CutPrefix(symbol, "occlum_ecall_"); ok {
			return spot{ecall, rolePlain, name}, true
		}
		name, ok := strings.CutPrefix(symbol, "occlum_ocall_")
		return spot{ocall, rolePlain, name}, ok
	}}
	// Gramine's own counters tell the crossings.
	gramine = &runtime{name: "gramine", spot: func(symbol string) (spot, bool) {
		name, ok := strings.CutPrefix(symbol, "sgx_ocall_")
		return spot{ocall, rolePlain, name}, ok
	}}
)

// runtimeOf tells the runtime whose functions a mapped file may have. Open Enclave's are in the executable itself.
func runtimeOf(detected, file string, isExe bool) *runtime {
	name := path.Base(file)
	switch {
	case detected == "gramine-sgx":
		if isExe {
			return gramine
		}
	case strings.HasPrefix(name, "libocclum-pal.so"):
		return occlum
	case strings.HasPrefix(name, "libsgx_urts.so") && detected == "sgx-sdk":
		return sdk
	case isExe && (detected == "openenclave" || detected == "ego" || detected == "sgx-sdk"):
		return openEnclave
	}
	return nil
}

// plainName takes off what a compiler adds to the name of a function that it made a variant of
// (".constprop.0", ".isra.0"). Parts that it split off (".part.0", ".cold") are entered in the middle of a
// call: they are no functions.
func plainName(symbol string) (name string, variant bool) {
	name, suffix, variant := strings.Cut(symbol, ".")
	if strings.HasPrefix(suffix, "cold") || strings.Contains(suffix, "part") {
		return "", true
	}
	return name, variant
}

// findings are the spots of a file, by address as linked.
type findings struct {
	spots      map[uint64]spot
	start, end uint64 // of Gramine: sgx_ecall and thread_exit; 0 where there is none
	layout     *layout
}

// maxSpots bounds the functions of a file that are probed.
const maxSpots = 512

// find looks for the functions of the runtime in the file.
func (r *runtime) find(p *program) (*findings, error) {
	f := &findings{spots: map[uint64]spot{}}
	dispatches := false
	err := p.functions(func(fn function) {
		if r == gramine {
			switch fn.name {
			case "sgx_ecall":
				f.start = fn.address
			case "thread_exit":
				f.end = fn.address
			}
		}
		name, variant := plainName(fn.name)
		s, ok := r.spot(name)
		// A variant may get its arguments elsewhere.
		if ok && (!variant || s.role == rolePlain) && len(f.spots) < maxSpots {
			f.spots[fn.address] = s
			dispatches = dispatches || s.role == roleOEDispatch
		}
	})
	if err != nil {
		return nil, err
	}
	if r == openEnclave && !dispatches {
		clear(f.spots) // a __morestack of split stacks, say
	}
	if r == gramine {
		f.layout, err = findLayout(p)
	}
	return f, err
}

// ocallTable reads the addresses of the OCALLs' bridges from the file that has the table, never from the
// memory of the process: what a file says of itself can only be wrong for those who run that file.
//
//	struct { size_t count; void *ocall[]; }   as sgx_edger8r writes it
func (p *program) ocallTable(address uint64) ([]uint64, error) {
	const most = maxSpots
	head, err := p.words(address, 1)
	if err != nil {
		return nil, fmt.Errorf("reading the OCALL table: %w", err)
	}
	if head[0] > most {
		return nil, fmt.Errorf("the OCALL table at %#x has %d entries: at most %d are believed", address, head[0], most)
	}
	bridges, err := p.words(address+8, int(head[0]))
	if err != nil {
		return nil, fmt.Errorf("reading the OCALL table: %w", err)
	}
	return bridges, nil
}

// Gramine counts by `lock incq %gs:OFFSET` (host_entry.S), three times, with offsets one after the other.
var lockIncGS = []byte{0x65, 0xf0, 0x48, 0xff, 0x04, 0x25}

// findLayout finds where the counters are. The control block of a thread (pal_tcb.h, struct pal_host_tcb)
// has EENTERs, EEXITs, AEXs and two kinds of signals one after the other; the code increments the first three.
func findLayout(p *program) (*layout, error) {
	found := map[uint32]bool{}
	for _, s := range p.segments {
		if elf.ProgType(s.Type) != elf.PT_LOAD || elf.ProgFlag(s.Flags)&elf.PF_X == 0 {
			continue
		}
		const most = 64 << 20 // bytes of code; Gramine's loader has 0.3 MB
		if err := scanIncrements(io.NewSectionReader(p.file, int64(s.Off), int64(min(s.Filesz, most))), found); err != nil {
			return nil, err
		}
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
	const most = 16 // offsets: more are no Gramine
	length := len(lockIncGS) + 4
	buffer, kept := make([]byte, chunk), 0
	for {
		n, err := code.Read(buffer[kept:])
		text := buffer[:kept+n]
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
		kept = copy(buffer, text[max(0, len(text)-length+1):])
	}
}
