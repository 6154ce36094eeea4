// SPDX-License-Identifier: Apache-2.0

package userprobe

import (
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/agent/userprobe/probefile"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// registers are the offsets of x86-64's registers in struct pt_regs (arch/x86/include/asm/ptrace.h).
var registers = map[string]uint32{
	"r15": 0, "r14": 8, "r13": 16, "r12": 24, "bp": 32, "bx": 40, "r11": 48, "r10": 56, "r9": 64, "r8": 72,
	"ax": 80, "cx": 88, "dx": 96, "si": 104, "di": 112, "ip": 128, "sp": 152,
}

// arguments are the registers of the arguments of a function, in the calling convention of the kernel and of programs.
var arguments = []string{"di", "si", "dx", "cx", "r8", "r9"}

var errArchitecture = fmt.Errorf("probes on functions need x86-64; this is %s", runtime.GOARCH)

// locator finds a field of the events of a probe.
type locator func(probefile.Field) (fetch, error)

// ofFunction finds arguments and results of a function.
func ofFunction(f probefile.Field) (fetch, error) {
	if at, ok := ofThread(f); ok {
		return at, nil
	}
	switch f.Name {
	case probefile.Duration:
		return fetch{Origin: fromDuration}, nil
	case probefile.Errno: // an int has only the lower half of the register
		return fetch{Origin: fromRegister, Offset: registers["ax"], Size: 4, IsSigned: 1, IsError: 1}, nil
	case probefile.Return:
		return register(f, "ax"), nil
	}
	i, err := argument(f)
	if err != nil || i >= len(arguments) {
		return fetch{}, fmt.Errorf("there is no field %s", f.Name)
	}
	return register(f, arguments[i]), nil
}

// argument returns the index of an argument. The file's reader has checked the name.
func argument(f probefile.Field) (int, error) {
	i, err := strconv.Atoi(strings.TrimPrefix(f.Name, "arg"))
	return i - 1, err
}

func register(f probefile.Field, name string) fetch {
	return typed(fetch{Origin: fromRegister, Offset: registers[name], Size: 8}, f)
}

// typed applies the type that the user has given.
func typed(at fetch, f probefile.Field) fetch {
	if f.Size > 0 {
		at.Size, at.IsSigned = uint32(f.Size), flag(f.Signed)
	}
	return at
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// ofThread finds the fields that every event has.
func ofThread(f probefile.Field) (fetch, bool) {
	switch f.Name {
	case probefile.Comm:
		return fetch{Origin: fromComm}, true
	case probefile.CPU:
		return fetch{Origin: fromCpu, Size: 4}, true
	}
	return fetch{}, false
}

// Where tracefs may be mounted, below /sys.
var tracefs = []string{"kernel/tracing/events", "kernel/debug/tracing/events"}

// maxFormat is the maximum size of the description of a tracepoint. The longest ones have about 10 kB.
const maxFormat = 64 << 10

// tracepointFormat reads the description of a tracepoint's record.
func tracepointFormat(sys hostfs.Root, t probefile.Target) (string, error) {
	mounted := false
	var failed error
	for _, dir := range tracefs {
		data, err := sys.ReadWhole(maxFormat, dir, t.Category, t.Name, "format")
		if err == nil {
			return string(data), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			failed = err
		}
		mounted = mounted || sys.Exists(dir)
	}
	switch {
	case failed != nil:
		return "", failed
	case !mounted:
		return "", errors.New("tracefs is not mounted (it describes tracepoints): mount -t tracefs tracefs /sys/kernel/tracing")
	}
	return "", fmt.Errorf("this kernel has no tracepoint %s: its tracepoints are listed in /sys/kernel/tracing/events", t)
}

// formatLine is the description of a field: "field:unsigned int bytes; offset:28; size:4; signed:0;".
var formatLine = lazy.Regexp(`^\s*field:([^;]*?)\b([A-Za-z_][A-Za-z0-9_]*)(\[[^;\]]*\])?;\s*offset:(\d{1,5});\s*size:(\d{1,5});\s*signed:([01]);`)

// ofRecord finds fields of a tracepoint by its description.
func ofRecord(format string) locator {
	fields := map[string]fetch{}
	var names []string
	for line := range strings.Lines(format) {
		m := formatLine().FindStringSubmatch(line)
		if m == nil || strings.HasPrefix(m[2], "common_") {
			continue
		}
		offset, _ := strconv.ParseUint(m[4], 10, 32) // digits only
		size, _ := strconv.ParseUint(m[5], 10, 32)
		at := fetch{Origin: fromRecord, Offset: uint32(offset), Size: uint32(size), IsSigned: flag(m[6] == "1")}
		if number := m[3] == "" && !strings.Contains(m[1], "__data_loc") && !strings.Contains(m[1], "__rel_loc"); !number {
			at.Size = 0
		} else {
			names = append(names, m[2])
		}
		fields[m[2]] = at
	}
	slices.Sort(names)
	return func(f probefile.Field) (fetch, error) {
		if at, ok := ofThread(f); ok {
			return at, nil
		}
		name := f.Name
		if name == probefile.Errno {
			name = "ret"
		}
		at, ok := fields[name]
		switch {
		case !ok:
			return fetch{}, fmt.Errorf("the tracepoint has no field %s; its numbers are %s", name, strings.Join(names, ", "))
		case at.Size != 1 && at.Size != 2 && at.Size != 4 && at.Size != 8:
			return fetch{}, fmt.Errorf("the field %s is not a number of at most 8 bytes", name)
		}
		at.IsError = flag(f.Name == probefile.Errno)
		return at, nil
	}
}

var comparisons = map[string]uint32{
	"==": onlyEqual, "!=": onlyUnequal, "<": onlyLess, "<=": onlyLessOrEqual, ">": onlyGreater, ">=": onlyGreaterOrEqual, "&": onlyHasBit,
}

var kinds = map[probefile.Kind]uint32{
	probefile.Events: kindCountEvents, probefile.Sum: kindAddValues, probefile.Histogram: kindHistogram,
}

// constants returns those of a probe's programs, and how its keys are read.
func constants(number int, p *probefile.Probe, at locator) (map[string]any, []fetch, error) {
	v, only := fetch{}, fetch{}
	how, limit := uint32(onlyAll), int64(0)
	var err error
	if p.Value.Kind != probefile.Events {
		if v, err = at(p.Value.Field); err != nil {
			return nil, nil, err
		}
	}
	if p.Only != nil {
		how, limit = comparisons[p.Only.Operator], p.Only.Number
		if only, err = at(p.Only.Field); err != nil {
			return nil, nil, err
		}
	}
	var read [keys]fetch
	for i, k := range p.Keys {
		if read[i], err = at(k.Field); err != nil {
			return nil, nil, err
		}
	}
	return map[string]any{
		"probe_number": uint32(number), "what_counts": kinds[p.Value.Kind], "keys_used": uint32(len(p.Keys)), "most_series": uint64(p.Series),
		"first_bucket": uint32(p.Value.First), "last_bucket": uint32(p.Value.Last),
		"only_how": how, "only_number": limit, "only_value": only, "value": v,
		"key_0": read[0], "key_1": read[1], "key_2": read[2],
	}, read[:len(p.Keys)], nil
}
