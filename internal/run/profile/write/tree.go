// SPDX-License-Identifier: Apache-2.0

package write

import (
	"slices"

	"github.com/teescope/teescope/internal/run/profile"
)

// mostNodes is the number of frames of a Tree. The narrowest are omitted.
const mostNodes = 200_000

// Tree is what the page draws a flame graph from. The nodes are in the order of a walk from the root, each before its children.
// The lists Depths, Frames, Totals and Selfs have an entry for each node.
type Tree struct {
	Title   string  `json:"title"`
	Type    string  `json:"type"`
	Unit    string  `json:"unit"`
	Total   int64   `json:"total"`
	Samples float64 `json:"samples"` // 0 if unknown
	Least   int64   `json:"least"`   // nodes below it are omitted
	// Counts and Times are the types of the values that are the number of events and their time, if the samples have both.
	Counts string      `json:"counts,omitempty"`
	Times  string      `json:"times,omitempty"`
	Notes  []string    `json:"notes,omitempty"` // for readers of figures
	Table  []TreeFrame `json:"table"`           // the functions that Frames refers to

	Depths []int    `json:"depths"`
	Frames []uint32 `json:"frames"`
	Totals []int64  `json:"totals"`
	Selfs  []int64  `json:"selfs"` // what no child has, also none that is omitted
	// Before and After are of a difference: the shares of both profiles, in units of 1e-7 %. Totals then has their sum.
	Before []int64 `json:"before,omitempty"`
	After  []int64 `json:"after,omitempty"`
}

// TreeFrame is a function.
type TreeFrame struct {
	Name    string `json:"name"`
	Library string `json:"library,omitempty"`
	Kind    string `json:"kind,omitempty"` // kernel or unresolved
}

// NoTree returns a tree without a node.
func NoTree(title string, notes ...string) *Tree {
	return &Tree{Title: title, Notes: notes, Table: []TreeFrame{}, Depths: []int{}, Frames: []uint32{}, Totals: []int64{}, Selfs: []int64{}}
}

// NewTree returns the tree of a profile.
func NewTree(p *profile.Profile, title string) *Tree {
	return treeOf(p, place(p, mostNodes, 1), title)
}

func treeOf(p *profile.Profile, l *plan, title string) *Tree {
	t := NoTree(title)
	t.Type, t.Unit, t.Total, t.Samples, t.Least, t.Notes = p.Values[p.Main].Type, p.Values[p.Main].Unit, p.Total(), p.Taken(), l.least, p.Notes
	t.Counts, t.Times = p.Weights()
	index := map[uint32]uint32{} // by rank
	for _, b := range l.bars {
		at, known := index[l.rank[b.frame]]
		if !known {
			at = uint32(len(t.Table))
			index[l.rank[b.frame]] = at
			t.Table = append(t.Table, treeFrame(p.Frames[b.frame]))
		}
		t.Depths, t.Frames = append(t.Depths, b.depth), append(t.Frames, at)
		t.Totals, t.Selfs = append(t.Totals, b.values[p.Main]), append(t.Selfs, b.self)
	}
	return t
}

// DifferenceTree returns the tree of two profiles, whose nodes have the mean of their shares.
func DifferenceTree(before, after *profile.Profile, title string) (*Tree, error) {
	p, err := profile.Join(before, after)
	if err != nil {
		return nil, err
	}
	l := place(p, mostNodes, 1)
	t := treeOf(p, l, title)
	t.Notes = slices.Concat([]string{"A: " + amount(before) + ", B: " + amount(after)}, t.Notes)
	t.Samples = before.Taken() + after.Taken()
	t.Type = after.Values[after.Main].Type
	t.Counts, t.Times = after.Weights()
	for _, b := range l.bars {
		t.Before, t.After = append(t.Before, b.values[profile.BeforeValue]), append(t.After, b.values[profile.AfterValue])
	}
	return t, nil
}

func treeFrame(f profile.Frame) TreeFrame {
	one := TreeFrame{Name: f.Name(), Library: f.Library}
	switch {
	case f.Kernel:
		one.Kind = "kernel"
	case !f.Resolved():
		one.Kind = "unresolved"
	}
	return one
}
