// SPDX-License-Identifier: Apache-2.0

package runfile

import (
	"bytes"
	"fmt"

	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read"
)

// Profile reads the profiles of all repetitions in a run file and adds them up.
func Profile(name string, o read.Options) (*profile.Profile, error) {
	r, err := run.Open(name)
	if err != nil {
		return nil, err
	}
	var b *profile.Builder
	for _, one := range r.Profiles {
		if len(one.Data) == 0 {
			continue // it was too large, and has its functions only
		}
		p, err := read.Read(bytes.NewReader(one.Data), o, profile.DefaultLimits())
		if err != nil {
			return nil, fmt.Errorf("%s: the profile of repetition %d: %w", name, one.Repetition, err)
		}
		if b == nil {
			b = profile.NewBuilder(p.Format, p.Values, profile.DefaultLimits())
		}
		if err := b.Merge(p, func(*profile.Sample) bool { return true }); err != nil {
			return nil, fmt.Errorf("%s: the profile of repetition %d: %w", name, one.Repetition, err)
		}
	}
	if b == nil {
		return nil, fmt.Errorf("%s has no profile: record it with --profile", name)
	}
	return b.Profile(), nil
}
