// SPDX-License-Identifier: Apache-2.0

package read

import (
	"io"
	"math"

	tables "github.com/teescope/teescope/internal/advise/read"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/run/profile"
)

// maxTable is the number of bytes of a table, which is read as a whole.
const maxTable = 64 << 20

// readTable reads a table that has one row for each function or system call, without stacks.
func readTable(in io.Reader, of format, limits profile.Limits) (*profile.Profile, error) {
	data, err := inputfile.ReadAll(in, maxTable)
	if err != nil {
		return nil, err
	}
	if of == straceCounts {
		return systemCalls(data, limits)
	}
	return hotspots(data, limits)
}

// systemCalls reads the output of strace -c: the number of calls, and their system time or, with -w, the time until they returned.
func systemCalls(data []byte, limits profile.Limits) (*profile.Profile, error) {
	calls, err := tables.ParseCalls(data)
	if err != nil {
		return nil, err
	}
	b := profile.NewBuilder("strace -c", []profile.ValueType{{Type: "calls", Unit: "count"}, {Type: "time", Unit: "nanoseconds"}}, limits)
	for _, row := range calls.Rows {
		if err := addRow(b, profile.Frame{Function: row.Name, Library: profile.CallLibrary}, int64(row.Calls), wholeOf(row.Seconds*1e9)); err != nil {
			return nil, err
		}
	}
	p := b.Profile()
	p.Main = 0 // the time of most calls is below the resolution
	return p, nil
}

// hotspots reads the table of functions of VTune.
func hotspots(data []byte, limits profile.Limits) (*profile.Profile, error) {
	functions, err := tables.ParseHotspots(data)
	if err != nil {
		return nil, err
	}
	value, scale := profile.ValueType{Type: "cycles", Unit: "count"}, 1.0
	if functions.Seconds {
		value, scale = profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, 1e9
	}
	b := profile.NewBuilder("VTune hotspots", []profile.ValueType{value}, limits)
	for _, row := range functions.Rows {
		if err := addRow(b, profile.Frame{Function: profile.NameOf(row.Name)}, wholeOf(row.Value*scale)); err != nil {
			return nil, err
		}
	}
	return b.Profile(), nil
}

// addRow adds a row as a stack of one frame.
func addRow(b *profile.Builder, f profile.Frame, values ...int64) error {
	at, err := b.Frame(f)
	if err != nil {
		return err
	}
	return b.Add([]uint32{at}, nil, values...)
}

// wholeOf rounds a value, which is not negative.
func wholeOf(v float64) int64 { return int64(math.Round(min(v, 1<<62))) }
