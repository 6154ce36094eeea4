// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"sync"
)

// mostShared bounds the maps that are kept. A machine has some thousands of different labels in all answers of an evaluation.
const mostShared = 20_000

// A LabelSet holds the labels of samples, so that equal ones are one map. The answers to a hundred queries have the same labels again and
// again. Nobody may change them.
type LabelSet struct {
	mu   sync.Mutex
	maps map[string]map[string]string
}

type labelSetKey struct{}

// SharingLabels returns a context in which sources may use one map for equal labels.
func SharingLabels(ctx context.Context) context.Context {
	return context.WithValue(ctx, labelSetKey{}, &LabelSet{maps: make(map[string]map[string]string)})
}

// LabelSetOf returns the set of a context of [SharingLabels], or nil.
func LabelSetOf(ctx context.Context) *LabelSet {
	s, _ := ctx.Value(labelSetKey{}).(*LabelSet)
	return s
}

// Of returns the labels with this key, which are written at the first call. A nil set keeps none.
func (s *LabelSet) Of(key []byte, labels func() map[string]string) map[string]string {
	if s == nil {
		return labels()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, found := s.maps[string(key)]
	if found {
		return known
	}
	if len(s.maps) >= mostShared {
		clear(s.maps)
	}
	known = labels()
	s.maps[string(key)] = known
	return known
}
