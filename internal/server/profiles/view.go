// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"context"
	"errors"
	"net/http"

	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/run/profile/write"
)

// serveTree answers with the frames that the page draws. The parameters are those of serveMerged.
func (s *Store) serveTree(w http.ResponseWriter, r *http.Request) {
	a, from, differs, err := readSides(r.URL.Query())
	var t *write.Tree
	if !s.inTurn(w, r, err, func(ctx context.Context) error {
		p, before, title, err := s.sides(ctx, a, from, differs)
		switch {
		case errors.Is(err, errNone): // a page without samples is no error
			t, err = write.NoTree(a.title(), err.Error()), nil
		case err != nil:
		case differs:
			t, err = write.DifferenceTree(before, p, title)
		default:
			t = write.NewTree(p, title)
		}
		return err
	}) {
		return
	}
	jsonapi.Answer(w, t)
}
