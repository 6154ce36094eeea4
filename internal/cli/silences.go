// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/analysis/silence"
	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/lib/text"
)

// Silences lists and changes the silences of a server.
type Silences struct {
	Server string
	Access remote.Access
}

// maxFindings is the maximum size of an answer about findings, in bytes.
const maxFindings = 32 << 20

// listed is a silence as the server lists it.
type listed struct {
	silence.Silence
	Status struct {
		State silence.State `json:"state"`
	} `json:"status"`
}

// Add stores a silence and writes its ID.
func (s Silences) Add(ctx context.Context, out io.Writer, one silence.Silence, asJSON bool) error {
	body, err := json.Marshal(one)
	if err != nil {
		return err
	}
	var stored struct {
		ID string `json:"silenceID"`
	}
	answer, err := s.ask(ctx, http.MethodPost, "", body)
	if err != nil {
		return err
	}
	if err := decoded(answer, s.Server, &stored); err != nil {
		return err
	}
	if asJSON {
		_, err = out.Write(answer)
	} else {
		_, err = fmt.Fprintln(out, text.Terminal(stored.ID))
	}
	return err
}

// End ends silences.
func (s Silences) End(ctx context.Context, ids []string) error {
	for _, id := range ids {
		if id == "" || strings.ContainsAny(id, "/?#%") {
			return fmt.Errorf("%q is not the ID of a silence: \"teescope findings mutes\" lists them", id)
		}
		if _, err := s.ask(ctx, http.MethodDelete, id, nil); err != nil {
			return fmt.Errorf("silence %s: %w", text.Terminal(id), err)
		}
	}
	return nil
}

// List writes the silences, those that have ended only if all is true.
func (s Silences) List(ctx context.Context, out io.Writer, all, asJSON bool) error {
	answer, err := s.ask(ctx, http.MethodGet, "", nil)
	if err != nil {
		return err
	}
	var silences []listed
	if err := decoded(answer, s.Server, &silences); err != nil {
		return err
	}
	shown := []listed{}
	for _, one := range silences {
		if all || one.Status.State != silence.Expired {
			shown = append(shown, one)
		}
	}
	if asJSON {
		return jsonapi.Print(out, shown)
	}
	if len(shown) == 0 {
		_, err := fmt.Fprintln(out, "No finding is muted.")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tKIND\tSTATE\tUNTIL\tBY\tMATCHERS\tREASON")
	for _, one := range shown {
		until := "no end"
		if !one.EndsAt.IsZero() {
			until = one.EndsAt.Format(time.RFC3339)
		}
		var matchers []string
		for _, m := range one.Matchers {
			matchers = append(matchers, m.String())
		}
		cells := []string{one.ID, string(one.Kind), string(one.Status.State), until, cmp.Or(render.Claimed(one.CreatedBy, one.CreatedByVerified), "-"), strings.Join(matchers, " "), one.Comment}
		for i := range cells {
			cells[i] = text.Terminal(cells[i])
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

// ask sends a request about the silences, or about one.
func (s Silences) ask(ctx context.Context, method, id string, body []byte) ([]byte, error) {
	path := "/silences"
	if id != "" {
		path += "/" + id
	}
	answer, _, err := askFindings(ctx, s.Server, s.Access, method, path, nil, body)
	return answer, err
}

// askFindings sends a request to a path below /api/findings. It also returns the name of the server for messages.
func askFindings(ctx context.Context, address string, access remote.Access, method, path string, q url.Values, body []byte) ([]byte, string, error) {
	answer, target, err := askAPI(ctx, address, access, method, "api/findings"+path, q, body, maxFindings)
	if refused := (*refusal)(nil); errors.As(err, &refused) && errors.Is(err, errNoSuchAPI) {
		refused.error = fmt.Errorf("%s keeps no findings: name a \"teescope up\" or \"teescope server\" with analysis.enabled", target)
	}
	return answer, target, err
}
