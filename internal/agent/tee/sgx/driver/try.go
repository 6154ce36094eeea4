// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"

	"github.com/teescope/teescope/internal/agent/probe"
)

// Try loads and attaches everything that the backend might, each way separately, detaches it immediately, and
// reports the results. It does nothing if there is no driver to watch.
func Try(o Options) (_ []probe.Trial, err error) {
	probes := append(lifeProbes(), pageProbes()...)
	module, _ := New(o).loadedModule()
	switch {
	case module != "":
		of, err := readModule(o.Roots.Proc, module)
		if err != nil {
			return nil, err
		}
		probes = probesAt(module, of)
	case !New(o).hasDriver():
		return nil, nil
	}
	s, err := sizesFor(o)
	if err != nil {
		return nil, err
	}
	k, err := prepare(s)
	if err != nil {
		return nil, err
	}
	defer func() {
		k.object.Loaded()
		err = errors.Join(err, k.object.Close())
	}()
	var trials []probe.Trial
	for _, p := range probes {
		if len(p.Ways) == 0 {
			trials = append(trials, probe.Trial{Status: noFunction(p)})
			continue
		}
		status, ways := k.object.Try(p)
		trials = append(trials, probe.Trial{Status: status, Ways: ways})
	}
	return trials, nil
}
