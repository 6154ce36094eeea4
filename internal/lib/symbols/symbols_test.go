// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// The names of C++ are those of c++filt without parameters, and those of Rust have no hash.
func TestDemangle(t *testing.T) {
	for name, want := range map[string]string{
		"main": "main", "runtime.mallocgc": "runtime.mallocgc", "_start": "_start", "_Znot": "_Znot", "": "",
		"_ZN5Redis6Client4readEPKcm":                     "Redis::Client::read",
		"_ZNSt6vectorIiSaIiEE9push_backEOi":              "std::vector<int, std::allocator<int> >::push_back",
		"_ZN4core3fmt9Formatter3pad17h3e5b4b0a8d4b5b5cE": "core::fmt::Formatter::pad",
		"_RNvCs1234_7mycrate3foo":                        "mycrate::foo",
		"_RNvNtCs1234_7mycrate3foo3bar":                  "mycrate::foo::bar",
		"_Z" + strings.Repeat("P", 4000) + "i":           "_Z" + strings.Repeat("P", 4000) + "i",
	} {
		if got := Readable(name); got != want {
			t.Errorf("%.60q is %.60q, want %.60q", name, got, want)
		}
	}
}

func TestKallsyms(t *testing.T) {
	const list = "ffffffff81000000 T _stext\nffffffff81000010 t first\nffffffff81000010 T second\nffffffff81000020 D data\n" +
		"ffffffff81000040 W third\nffffffff82000000 T _etext\nffffffffc0000000 t mod_read\t[mod]\nffffffffc0000100 t bpf_prog_0123_x\t[bpf]\n"
	addresses := []uint64{0xffffffff80ffffff, 0xffffffff81000011, 0xffffffff81000025, 0xffffffff81000050, 0xffffffff82000001, 0xffffffffc0000004, 0xffffffffc0000104, 0xffffffffd0000000}
	got, shown, err := Kallsyms(strings.NewReader(list), addresses)
	if err != nil {
		t.Error(err)
	}
	var names []string
	for _, s := range got {
		names = append(names, s.Name+"/"+s.Module)
	}
	if want := "/ first/ first/ third/ / mod_read/mod bpf_prog_0123_x/bpf /"; !shown || strings.Join(names, " ") != want {
		t.Errorf("%q, want %q", strings.Join(names, " "), want)
	}
	if first, last := got[1], got[6]; first.Address != 0xffffffff81000010 || first.End != 0xffffffff81000040 || last.End != last.Address+longestFunction {
		t.Errorf("the first function is %+v, the last one %+v", first, last)
	}
	if _, shown, _ := Kallsyms(strings.NewReader("0000000000000000 T _stext\n"), addresses); shown {
		t.Error("hidden addresses are shown")
	}
}

// TestKallsymsOfAnyOrder compares with a search of the whole list for each address.
func TestKallsymsOfAnyOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		type function struct {
			at   uint64
			name string
		}
		var list strings.Builder
		var all []function
		for i := range 1 + random.IntN(30) {
			f := function{uint64(0x1000 + random.IntN(60)), fmt.Sprint("f", i)}
			all = append(all, f)
			fmt.Fprintf(&list, "%x t %s\n", f.at, f.name)
		}
		var addresses []uint64
		for at := uint64(0xfff); at < 0x1050; at += 1 + uint64(random.IntN(9)) {
			addresses = append(addresses, at)
		}
		got, _, err := Kallsyms(strings.NewReader(list.String()), addresses)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range addresses {
			var want KernelSymbol
			for _, f := range all {
				if f.at <= a && f.at > want.Address {
					want = KernelSymbol{Address: f.at, End: f.at + longestFunction, Name: f.name}
				}
			}
			for _, f := range all {
				if want.Name != "" && f.at > want.Address {
					want.End = min(want.End, f.at)
				}
			}
			if got[i] != want {
				t.Fatalf("%#x is %+v, want %+v, in\n%s", a, got[i], want, list.String())
			}
		}
	}
}

func TestPerfMap(t *testing.T) {
	const text = "1000 10 first\n0x1008 0x10 later one\n\nzz 10 bad\n2000 10\n3000 ffffffffffffffff all\n"
	long := "1000 10 " + strings.Repeat("x", 3<<20) + "\n"
	got := PerfMap(strings.NewReader(long+text), []uint64{0xfff, 0x1007, 0x1008, 0x1017, 0x1018, 0x2000, 0x3000})
	if want := "|first|later one|later one|||all"; strings.Join(got, "|") != want {
		t.Errorf("%q, want %q", strings.Join(got, "|"), want)
	}
}

// goTable is a table of two functions of Go 1.20, which begin 0x1000 and 0x1010 behind the beginning of the code and end at 0x1020.
func goTable() []byte {
	t := binary.LittleEndian.AppendUint32(nil, go120)
	t = append(t, 0, 0, 1, 8)
	for _, word := range []uint64{2, 0, 0, 72, 0, 0, 0, 80} {
		t = binary.LittleEndian.AppendUint64(t, word)
	}
	t = append(t, "one\x00two\x00"...)
	for _, word := range []uint32{0x1000, 20, 0x1010, 28, 0x1020, 0x1000, 0, 0x1010, 4} {
		t = binary.LittleEndian.AppendUint32(t, word)
	}
	return t
}

// The code begins where the table says, or else where the module of the table does.
func TestGoTable(t *testing.T) {
	const at, module, start = 0x500000, 0x600000, 0x400000
	moduleOf := func(table uint64) []uint64 {
		words := make([]uint64, moduleStart+1)
		words[moduleTable], words[moduleStart] = table, start
		return words
	}
	for what, tt := range map[string]struct {
		memory map[uint64][]uint64
		module uint64
		want   bool
	}{
		"the table":          {map[uint64][]uint64{at + startAt: {start}}, 0, true},
		"its module":         {map[uint64][]uint64{at + startAt: {0}, module: moduleOf(at)}, module, true},
		"another's module":   {map[uint64][]uint64{at + startAt: {0}, module: moduleOf(at + 1)}, module, false},
		"a part of a module": {map[uint64][]uint64{at + startAt: {0}, module: moduleOf(at)[:2]}, module, false},
		"nothing":            {nil, 0, false},
	} {
		table, err := OpenGoTable(bytes.NewReader(goTable()), binary.LittleEndian)
		if err != nil {
			t.Fatal(err)
		}
		words := func(address uint64, n int) []uint64 { return tt.memory[address][:min(n, len(tt.memory[address]))] }
		if got := table.Start(at, tt.module, words); got != tt.want {
			t.Errorf("%s says where the code begins: %v", what, got)
		}
		if !tt.want {
			continue
		}
		got := table.Names([]uint64{0x1000, 0x400fff, 0x401000, 0x40100f, 0x401010, 0x40101f, 0x401020})
		if want := "||one|one|two|two|"; strings.Join(got, "|") != want {
			t.Errorf("%s: %q, want %q", what, strings.Join(got, "|"), want)
		}
	}
}

// FuzzNames reads lists of symbols that foreign processes write, and names that they choose.
func FuzzNames(f *testing.F) {
	f.Add([]byte("1000 10 first\n1008 10 second\n"), uint64(0x1004))
	f.Add([]byte("ffffffff81000000 T _stext\nffffffff81000010 t f\t[m]\n"), uint64(0xffffffff81000011))
	f.Add([]byte("_ZN5Redis6Client4readEPKcm"), uint64(1))
	f.Add([]byte("_RNvNtCs1234_7mycrate3foo3bar"), uint64(1))
	f.Add(goTable(), uint64(0x1010))
	f.Fuzz(func(t *testing.T, data []byte, address uint64) {
		addresses := []uint64{address}
		if address < 1<<63 {
			addresses = append(addresses, address+1)
		}
		for _, name := range PerfMap(strings.NewReader(string(data)), addresses) {
			if len(name) > maxPerfLine || strings.ContainsAny(name, "\n") || !strings.Contains(string(data), name) {
				t.Errorf("%q is not a name of the perf map", name)
			}
		}
		found, _, _ := Kallsyms(bytes.NewReader(data), addresses)
		for i, s := range found {
			if s.Name != "" && (s.Address > addresses[i] || !strings.Contains(string(data), s.Name)) {
				t.Errorf("%#x is %+v", addresses[i], s)
			}
		}
		if table, err := OpenGoTable(bytes.NewReader(data), binary.LittleEndian); err == nil {
			for _, name := range table.Names(addresses) {
				if len(name) > Longest || !strings.Contains(string(data), name) {
					t.Errorf("%q is not a name of the table", name)
				}
			}
		}
		if text := Readable(string(data[:min(len(data), 4096)])); len(text) > max(4096, len(data))+64 {
			t.Errorf("a name has %d bytes", len(text))
		}
	})
}
