// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"

	"github.com/spf13/pflag"
)

// Flags adds the flags of a command. The flags only record their values. [Load] checks them, so that a bad flag is
// reported together with every other problem.
func Flags(set *pflag.FlagSet, cmd Command) {
	set.String(configKey, "", "`file` with the configuration, in YAML")
	for _, k := range keys() {
		if k.commands&cmd == 0 {
			continue
		}
		def := k.defText // the same on every host, so that the documentation is
		if def == "" {
			def = strings.Join(k.def(Host{}), k.sep)
		}
		f := set.VarPF(&flagValue{kind: k.kind, def: def, list: k.list()}, k.name, "", k.usage)
		if k.kind == "bool" {
			f.NoOptDefVal = "true"
		}
	}
}

// flagValue records the values of a flag.
type flagValue struct {
	kind   string
	def    string
	list   bool
	values []string
}

// String returns the given value, or before that the default, which --help prints.
func (v *flagValue) String() string {
	if len(v.values) == 0 {
		return v.def
	}
	return strings.Join(v.values, " ")
}

// Set implements pflag.Value. When a flag that is not a list is given twice, the last value counts.
func (v *flagValue) Set(s string) error {
	if !v.list {
		v.values = nil
	}
	v.values = append(v.values, s)
	return nil
}

// Type returns what --help prints after the name.
func (v *flagValue) Type() string { return v.kind }
