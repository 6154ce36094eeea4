// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"maps"

	"github.com/cilium/ebpf"
)

// Variant is a program of an object that is loaded with constants of its own. It shares all maps with the other programs.
type Variant struct {
	Program   string         // in the object
	Name      string         // unique in the object: that of the variant in [Object.Costs] and [Object.Detach]
	Constants map[string]any // by variable, as for [Object.SetConstant]
}

// constants is the map of an object's constants.
const constants = ".rodata"

// Load loads a variant without attaching it.
func (v Variant) Load(o *Object) (*ebpf.Program, error) {
	return load(o, v.Program, func(spec *ebpf.CollectionSpec) (map[string]*ebpf.Map, error) {
		for name, value := range v.Constants {
			variable := spec.Variables[name]
			if variable == nil {
				return nil, fmt.Errorf("setting constant %s: no such variable in the object", name)
			}
			if err := variable.Set(value); err != nil {
				return nil, fmt.Errorf("setting constant %s: %w", name, err)
			}
		}
		shared := maps.Clone(o.maps)
		delete(shared, constants)
		return shared, nil
	})
}

// Attach loads a variant and attaches it to an event of the kernel.
func (v Variant) Attach(o *Object, m Mechanism, target string) error {
	prog, err := v.Load(o)
	if err != nil {
		return err
	}
	h := &hooked{way: Way{Program: v.Name, Mechanism: m, Target: target}, prog: prog}
	if err := h.on(); err != nil {
		return errors.Join(err, prog.Close())
	}
	h.keep(o)
	return nil
}

// AttachUser loads a variant and attaches it to sites in a file, or to the returns of the functions that begin there,
// as a [UserProbe]. The program NAME_multi of the object is used where the kernel can attach to many sites at once.
func (v Variant) AttachUser(o *Object, m Mechanism, path string, sites []Site) error {
	multi := attachesMany()
	if multi {
		v.Program += "_multi"
	}
	prog, err := v.Load(o)
	if err != nil {
		return err
	}
	l, err := (&UserProbe{prog, multi}).attach(path, sites, m == Uretprobe)
	if err != nil {
		return errors.Join(err, prog.Close())
	}
	(&hooked{way: Way{Program: v.Name, Mechanism: m, Target: path}, prog: prog, link: l}).keep(o)
	return nil
}

// keep adds an attached program to the object.
func (h *hooked) keep(o *Object) {
	o.keep(h.way.Program, h.prog, h)
	o.hooks[h.way.Program] = h
}
