// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
)

// stateVersion is the version of the file's format.
const stateVersion = 1

// maxState is the maximum size of the file in bytes. It is enough for all open alerts and waiting deliveries with
// annotations of a few kilobytes.
const maxState = 64 << 20

// state is the content of the file.
type state struct {
	Version int                    `json:"version"`
	Open    []*episode             `json:"open"`
	Ended   []*episode             `json:"ended,omitempty"`
	Queues  map[string][]*delivery `json:"queues,omitempty"` // by key of the webhook
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
	bad := func(e *episode) bool { return e == nil || e.Key == "" || len(e.Labels) == 0 || e.StartsAt.IsZero() }
	for _, list := range [][]*episode{s.Open, s.Ended} {
		if slices.ContainsFunc(list, bad) {
			return state{}, errors.New("an alert without a key, labels or a start time")
		}
	}
	for _, queue := range s.Queues {
		if slices.ContainsFunc(queue, func(d *delivery) bool { return d == nil || d.ID == "" || len(d.Body) == 0 }) {
			return state{}, errors.New("a delivery without an id or a body")
		}
	}
	return s, nil
}

// load reads the file. An invalid file is renamed; the firing alerts are then sent again.
func (h *Hub) load() {
	data, err := readBounded(h.opts.File)
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

func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxState+1))
	if err == nil && len(data) > maxState {
		err = fmt.Errorf("larger than %d bytes", maxState)
	}
	return data, err
}

// save writes the state. If that fails, alerts are still sent, and the failure is logged once: a restart would send some
// alerts twice.
func (h *Hub) save() {
	err := h.write()
	if err != nil && h.saved {
		h.opts.Log.Error("state of sent alerts cannot be saved: after a restart some alerts are sent again; free disk space",
			"file", h.opts.File, "reason", err)
	}
	h.saved = err == nil
}

// write replaces the file atomically.
func (h *Hub) write() error {
	data, err := json.Marshal(state{Version: stateVersion, Open: h.sorted(), Ended: h.ended, Queues: h.queues})
	if err != nil {
		return err
	}
	// No other process writes here, because the database has locked the directory. A kill leaves at most one such file.
	f, err := os.OpenFile(h.opts.File+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), h.opts.File)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
