// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/teescope/teescope/internal/lib/inputfile"
)

// stateVersion is the version of the file's format.
const stateVersion = 1

// maxState is the maximum size of the file in bytes. It is enough for all open alerts and waiting deliveries with
// annotations of a few kilobytes.
const maxState = 64 << 20

// state is the content of the file.
type state struct {
	Version int `json:"version"`
	// Generation counts the writings of the file. The journal with the same number continues it.
	Generation uint64                 `json:"generation,omitempty"`
	Open       []*episode             `json:"open"`
	Ended      []*episode             `json:"ended,omitempty"`
	Queues     map[string][]*delivery `json:"queues,omitempty"` // by key of the webhook
}

// parseState parses a file and validates every entry.
func parseState(data []byte) (state, error) {
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return state{}, err
	}
	if s.Version != stateVersion {
		return state{}, fmt.Errorf("version %d of the format, want %d", s.Version, stateVersion)
	}
	return s, s.validate()
}

// validate checks every entry.
func (s *state) validate() error {
	bad := func(e *episode) bool { return e == nil || e.Key == "" || len(e.Labels) == 0 || e.StartsAt.IsZero() }
	for _, list := range [][]*episode{s.Open, s.Ended} {
		if slices.ContainsFunc(list, bad) {
			return errors.New("an alert without a key, labels or a start time")
		}
	}
	for _, queue := range s.Queues {
		if slices.ContainsFunc(queue, func(d *delivery) bool { return d == nil || d.ID == "" || len(d.Body) == 0 }) {
			return errors.New("a delivery without an id or a body")
		}
	}
	return nil
}

// load reads the file. An invalid file is renamed; the firing alerts are then sent again.
func (h *Hub) load() {
	data, err := inputfile.ReadOwn(h.opts.File, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var s state
	if err == nil {
		s, err = parseState(data)
	}
	if err != nil {
		aside := h.opts.File + ".bad"
		h.opts.Log.Warn("state of sent alerts cannot be read: firing alerts are sent again",
			"file", h.opts.File, "reason", err, "kept", aside)
		if err := os.Rename(h.opts.File, aside); err != nil {
			h.opts.Log.Warn("the file cannot be renamed and will be replaced", "reason", err)
		}
		return
	}
	replay(&s, h.opts.File+journalSuffix)
	h.disk.generation = s.Generation
	for _, e := range s.Open[:min(len(s.Open), maxOpen)] {
		h.open[e.Key] = e
	}
	h.ended = s.Ended
	for _, w := range h.opts.Webhooks {
		if queue := s.Queues[w.key]; len(queue) > 0 {
			h.queues[w.key] = queue[max(0, len(queue)-maxQueue):]
		}
		delete(s.Queues, w.key)
	}
	for key, queue := range s.Queues {
		h.opts.Log.Warn("deliveries dropped: the webhook is no longer configured", "webhook", key, "deliveries", len(queue))
	}
}
