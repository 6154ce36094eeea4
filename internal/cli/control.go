// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/lib/text"
)

// Control lists and changes what an agent measures for a limited time.
type Control struct {
	Server string
	Access remote.Access
	By     string // who switches something on, where no password proves that
	Reason string
}

// maxControl is the maximum size of an answer about what is on, in bytes.
const maxControl = 1 << 20

// controlled is one change as the agent shows it.
type controlled struct {
	ID          string    `json:"id"`
	Kind        string    `json:"kind"`
	Rule        string    `json:"rule"`
	Event       string    `json:"event"`
	By          string    `json:"by"`
	ByVerified  bool      `json:"by_verified"`
	End         time.Time `json:"end"`
	Reason      string    `json:"reason"`
	SecondsLeft float64   `json:"seconds_left"`
}

// Change is what begins.
type Change struct {
	Kind    string  `json:"kind"`
	Rule    string  `json:"rule,omitempty"`  // of a watch, or the probe of a pause
	Event   string  `json:"event,omitempty"` // of a profile
	Seconds float64 `json:"seconds"`
}

// On begins a change and writes the ID of the change and its end.
func (c Control) On(ctx context.Context, out io.Writer, change Change, asJSON bool) error {
	body, err := json.Marshal(struct {
		Change
		By     string `json:"by,omitempty"`
		Reason string `json:"reason,omitempty"`
	}{change, c.By, c.Reason})
	if err != nil {
		return err
	}
	answer, err := c.ask(ctx, http.MethodPost, "", body)
	if err != nil {
		return err
	}
	var one controlled
	if err := decoded(answer, c.Server, &one); err != nil {
		return err
	}
	if asJSON {
		_, err = out.Write(answer)
	} else {
		_, err = fmt.Fprintf(out, "%s is on until %s\n", text.Terminal(one.ID), one.End.Format(time.RFC3339))
	}
	return err
}

// List writes the changes in effect.
func (c Control) List(ctx context.Context, out io.Writer, asJSON bool) error {
	answer, err := c.ask(ctx, http.MethodGet, "", nil)
	if err != nil {
		return err
	}
	var list struct {
		Allowed bool
		Changes []controlled
	}
	if err := decoded(answer, c.Server, &list); err != nil {
		return err
	}
	switch {
	case asJSON:
		_, err = out.Write(answer)
		return err
	case !list.Allowed:
		_, err = fmt.Fprintln(out, "Nothing is switched on. This agent allows no changes: set control.enabled to allow them.")
		return err
	case len(list.Changes) == 0:
		_, err = fmt.Fprintln(out, "The agent measures what its configuration says: no change is on.")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tKIND\tOF\tUNTIL\tLEFT\tBY\tREASON")
	for _, one := range list.Changes {
		left := time.Duration(one.SecondsLeft * float64(time.Second)).Round(time.Second).String()
		cells := []string{one.ID, one.Kind, cmp.Or(one.Rule, one.Event, "-"), one.End.Format(time.RFC3339), left, cmp.Or(render.Claimed(one.By, one.ByVerified), "-"), cmp.Or(one.Reason, "-")}
		for i := range cells {
			cells[i] = text.Terminal(cells[i])
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

// End ends changes before their time.
func (c Control) End(ctx context.Context, ids []string) error {
	for _, id := range ids {
		if id == "" || strings.ContainsAny(id, "/?#%") {
			return fmt.Errorf("%q is not the ID of a change: \"teescope control list\" lists them", id)
		}
		if _, err := c.ask(ctx, http.MethodDelete, "/"+id, nil); err != nil {
			return fmt.Errorf("change %s: %w", text.Terminal(id), err)
		}
	}
	return nil
}

// ask sends a request to a path below /api/control.
func (c Control) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	answer, target, err := askAPI(ctx, c.Server, c.Access, method, "api/control"+path, nil, body, maxControl)
	if errors.Is(err, errNoSuchAPI) || err == nil && method == http.MethodGet && string(bytes.TrimSpace(answer)) == "null" {
		return nil, fmt.Errorf("%s measures nothing itself: name a \"teescope agent\" or \"teescope up\"", target)
	}
	return answer, err
}
