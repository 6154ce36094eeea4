// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/run/profile/write"
)

// serveTree answers with the frames that the page draws. The parameters are those of serveMerged.
func (s *Store) serveTree(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a, err := readQuery(q, "")
	from, differs, err2 := readBase(q, a)
	if err := errors.Join(err, err2); err != nil {
		jsonapi.Refuse(w, http.StatusBadRequest, jsonapi.BadData, err)
		return
	}
	ctx, done, err := s.begin(r.Context())
	if err != nil {
		refuse(w, err)
		return
	}
	defer done()
	t, err := s.tree(ctx, a, from, differs)
	done()
	if errors.Is(err, errNone) {
		t, err = write.NoTree(a.title(), err.Error()), nil // a page without samples is no error
	}
	if err != nil {
		refuse(w, err)
		return
	}
	jsonapi.Answer(w, t)
}

func (s *Store) tree(ctx context.Context, a, from query, differs bool) (*write.Tree, error) {
	p, err := s.merged(ctx, a)
	if err != nil || !differs {
		if err != nil {
			return nil, err
		}
		return write.NewTree(p, a.title()), nil
	}
	before, err := s.merged(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	return write.DifferenceTree(before, p, from.title()+" (A); "+a.title()+" (B)")
}
