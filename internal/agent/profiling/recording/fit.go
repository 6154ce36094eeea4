// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	pprof "github.com/google/pprof/profile"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
)

// Estimates of the bytes of a sample when it is written, and of each of its frames.
const sampleBytes, frameBytes = 80, 3

// maxNotes is the number of workloads that the notes name.
const maxNotes = 4

// Encode writes a profile in at most a number of bytes. If it is larger, the workloads with the most stacks lose theirs, so that
// those of the others stay. Their time stays too, in a location without a name.
func Encode(p *pprof.Profile, most int) ([]byte, error) {
	for {
		if err := p.CheckValid(); err != nil {
			return nil, err
		}
		var b bytes.Buffer
		if err := p.Write(&b); err != nil {
			return nil, err
		}
		if b.Len() <= most {
			return b.Bytes(), nil
		}
		sizes, all := estimate(p)
		if len(sizes) == 0 {
			return nil, fmt.Errorf("a profile of %d bytes without stacks: the limit is %d", b.Len(), most)
		}
		cut := map[string]bool{}
		for left := all; len(sizes) > 0 && (len(cut) == 0 || left > all*most/b.Len()); {
			name := largest(sizes)
			left -= sizes[name]
			delete(sizes, name)
			cut[name] = true
		}
		p = withoutStacks(p, cut)
	}
}

func workloadOf(s *pprof.Sample) string {
	if names := s.Label[profile.Workload]; len(names) > 0 {
		return names[0]
	}
	return ""
}

// stacked reports whether a sample has more than a location without a name.
func stacked(s *pprof.Sample) bool {
	return len(s.Location) > 1 || s.Location[0].Address != 0 || len(s.Location[0].Line) > 0 || s.Location[0].Mapping != nil
}

// estimate returns the bytes of the samples that have stacks, by workload.
func estimate(p *pprof.Profile) (sizes map[string]int, all int) {
	sizes = map[string]int{}
	for _, s := range p.Sample {
		if stacked(s) {
			n := sampleBytes + frameBytes*len(s.Location)
			sizes[workloadOf(s)] += n
			all += n
		}
	}
	return sizes, all
}

func largest(sizes map[string]int) (name string) {
	most := -1
	for of, n := range sizes {
		if n > most || n == most && of < name {
			name, most = of, n
		}
	}
	return name
}

// withoutStacks returns a profile in which the samples of workloads have no stacks and no times, so that those of a thread are one.
func withoutStacks(p *pprof.Profile, cut map[string]bool) *pprof.Profile {
	unknown := &pprof.Location{ID: uint64(len(p.Location) + 1)}
	p.Location = append(p.Location, unknown)
	kept := p.Sample[:0]
	threads := map[string]*pprof.Sample{}
	lost := map[string]int64{}
	for _, s := range p.Sample {
		name := workloadOf(s)
		if !cut[name] {
			kept = append(kept, s)
			continue
		}
		lost[name] += s.Value[0]
		key := fmt.Sprint(s.Label) // a map is printed in the order of its keys
		if one := threads[key]; one != nil {
			for i, v := range s.Value {
				one.Value[i] += v
			}
			continue
		}
		one := &pprof.Sample{Location: []*pprof.Location{unknown}, Label: s.Label, Value: s.Value}
		threads[key] = one
		kept = append(kept, one)
	}
	p.Sample = kept
	for _, name := range slices.Sorted(maps.Keys(lost))[:min(len(lost), maxNotes)] {
		p.Comments = append(p.Comments, fmt.Sprintf("%s%d samples of the workload %s have no stacks and times, because the profile was too large",
			profile.NoteComment, lost[name], text.Short(text.Label(name), 60)))
	}
	return p.Compact()
}
