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

// Encode writes a profile in at most a number of bytes. If it is larger, the workloads with the most samples lose their stacks, and
// then their threads, so that the others keep theirs. Their time stays too, in a location without a name.
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
		sizes, stacks, all := estimate(p)
		if len(sizes) == 0 {
			return nil, fmt.Errorf("the profile has %d bytes even without stacks and threads, and the limit is %d", b.Len(), most)
		}
		cut := map[string]loss{}
		for left := all; len(sizes) > 0 && (len(cut) == 0 || left > all*most/b.Len()); {
			name := largest(sizes)
			left -= sizes[name]
			delete(sizes, name)
			cut[name] = lossOfThreads
			if stacks[name] {
				cut[name] = lossOfStacks
			}
		}
		p = without(p, cut)
	}
}

// loss is what the samples of a workload lose.
type loss string

const (
	lossOfStacks  loss = "stacks and times"
	lossOfThreads loss = "processes, threads and times"
)

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

// whole reports whether a sample is that of a whole workload, which has nothing to lose.
func whole(s *pprof.Sample) bool {
	return !stacked(s) && len(s.NumLabel) == 0 && (len(s.Label) == 0 || len(s.Label) == 1 && len(s.Label[profile.Workload]) == 1)
}

// estimate returns the bytes of the samples that have something to lose, by workload, and the workloads with stacks.
func estimate(p *pprof.Profile) (sizes map[string]int, stacks map[string]bool, all int) {
	sizes, stacks = map[string]int{}, map[string]bool{}
	for _, s := range p.Sample {
		if whole(s) {
			continue
		}
		n := sampleBytes
		if stacked(s) {
			n += frameBytes * len(s.Location)
			stacks[workloadOf(s)] = true
		}
		sizes[workloadOf(s)] += n
		all += n
	}
	return sizes, stacks, all
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

// without returns a profile in which the samples of workloads have no stacks and no times, so that those of a thread are one, or
// those of the workload if it loses its threads.
func without(p *pprof.Profile, cut map[string]loss) *pprof.Profile {
	unknown := &pprof.Location{ID: uint64(len(p.Location) + 1)}
	p.Location = append(p.Location, unknown)
	kept := p.Sample[:0]
	merged := map[string]*pprof.Sample{}
	lost := map[string]int64{}
	for _, s := range p.Sample {
		name := workloadOf(s)
		what, is := cut[name]
		if !is {
			kept = append(kept, s)
			continue
		}
		lost[name] += s.Value[0]
		labels := s.Label
		if what == lossOfThreads {
			labels = map[string][]string{}
			if name != "" {
				labels[profile.Workload] = []string{name}
			}
		}
		key := fmt.Sprint(labels) // a map is printed in the order of its keys
		if one := merged[key]; one != nil {
			for i, v := range s.Value {
				one.Value[i] += v
			}
			continue
		}
		one := &pprof.Sample{Location: []*pprof.Location{unknown}, Label: labels, Value: s.Value}
		merged[key] = one
		kept = append(kept, one)
	}
	p.Sample = kept
	for _, name := range slices.Sorted(maps.Keys(lost))[:min(len(lost), maxNotes)] {
		p.Comments = append(p.Comments, fmt.Sprintf("%s%d samples of the workload %s have no %s, because the profile was too large",
			profile.NoteComment, lost[name], text.Short(text.Label(name), 60), cut[name]))
	}
	return p.Compact()
}
