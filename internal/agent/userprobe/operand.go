// SPDX-License-Identifier: Apache-2.0

package userprobe

import (
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/agent/userprobe/probefile"
	"github.com/teescope/teescope/internal/lib/text"
)

// An argument of a USDT probe is SIZE@OPERAND, where a negative size says that it is signed. The operand is a constant, a
// register, or memory at a register: -4@$5, 8@%rdi, 4@-20(%rbp).
var (
	operandForm = lazy.Regexp(`^(-?)([1248])@(.+)$`)
	memoryForm  = lazy.Regexp(`^(-?(?:0x)?[0-9a-fA-F]*)\(%([a-z0-9]+)\)$`)
)

// ofUSDT finds arguments of a USDT probe.
func ofUSDT(text string) locator {
	return func(f probefile.Field) (fetch, error) {
		if at, ok := ofThread(f); ok {
			return at, nil
		}
		all := strings.Fields(text)
		i, err := argument(f)
		if err != nil || i < 0 || i >= len(all) {
			return fetch{}, fmt.Errorf("the USDT probe has %d arguments, and no %s", len(all), f.Name)
		}
		at, err := operand(all[i])
		if err != nil {
			return fetch{}, fmt.Errorf("%s of the USDT probe is %w", f.Name, err)
		}
		return at, nil
	}
}

var errOperand = errors.New("it is not a constant, register or memory at a register")

// operand reads one argument.
func operand(s string) (fetch, error) {
	bad := fmt.Errorf("%q: %w", text.Short(text.Label(s), 60), errOperand)
	m := operandForm().FindStringSubmatch(s)
	if m == nil {
		return fetch{}, bad
	}
	size, _ := strconv.Atoi(m[2]) // one digit
	at := fetch{Size: uint32(size), IsSigned: flag(m[1] != "")}
	if number, ok := strings.CutPrefix(m[3], "$"); ok {
		n, err := strconv.ParseInt(number, 0, 64)
		if err != nil {
			return fetch{}, bad
		}
		at.Origin, at.Add = fromConstant, n
		return at, nil
	}
	if name, ok := strings.CutPrefix(m[3], "%"); ok {
		offset, width, ok := registerOf(name)
		if !ok || width < size {
			return fetch{}, bad
		}
		at.Origin, at.Offset = fromRegister, offset
		return at, nil
	}
	if m = memoryForm().FindStringSubmatch(m[3]); m == nil {
		return fetch{}, bad
	}
	offset, width, ok := registerOf(m[2])
	if !ok || width != 8 {
		return fetch{}, bad
	}
	at.Origin, at.Offset = fromMemory, offset
	if m[1] != "" {
		n, err := strconv.ParseInt(m[1], 0, 64)
		if err != nil {
			return fetch{}, bad
		}
		at.Add = n
	}
	return at, nil
}

// registerOf returns the offset of the lower bytes of a register in struct pt_regs, and how many of them its name stands for.
func registerOf(name string) (offset uint32, width int, ok bool) {
	if n, found := strings.CutPrefix(name, "r"); found && n != "" && n[0] >= '0' && n[0] <= '9' { // r8 to r15, r8d, r8w, r8b
		base := strings.TrimRight(n, "dwb")
		offset, ok = registers["r"+base]
		return offset, map[string]int{"": 8, "d": 4, "w": 2, "b": 1}[n[len(base):]], ok
	}
	if name == "rip" || name == "ip" {
		return 0, 0, false // the address depends on where the file is mapped
	}
	if offset, ok = registers[name]; ok { // ax, si
		return offset, 2, true
	}
	base := strings.TrimPrefix(name, "r")
	if offset, ok = registers[base]; ok && base != name {
		return offset, 8, true
	}
	base = strings.TrimPrefix(name, "e")
	if offset, ok = registers[base]; ok && base != name {
		return offset, 4, true
	}
	base = strings.TrimSuffix(name, "l")
	if offset, ok = registers[base]; ok && base != name { // sil, dil, bpl, spl
		return offset, 1, true
	}
	if len(name) == 2 && name[1] == 'l' { // al, bl, cl, dl
		offset, ok = registers[name[:1]+"x"]
		return offset, 1, ok
	}
	return 0, 0, false
}
