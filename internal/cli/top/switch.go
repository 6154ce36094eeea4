// SPDX-License-Identifier: Apache-2.0

package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// switchFor is how long something is switched on.
const switchFor = 10 * time.Minute

// toggle is the measurement that a key switches on, or off if it is on. A pause is on while its probe is off.
type toggle struct {
	kind string // of the agent's API: watch, timing or pause
	rule string // of a watch, or the probe of a pause
}

// toggleOf returns what a key switches for a workload.
func toggleOf(key, workload string) (t toggle, ok bool) {
	switch key {
	case "W":
		return toggle{"watch", "workload=" + workload}, true
	case "T":
		return toggle{kind: "timing"}, true
	}
	return toggle{}, false
}

func (t toggle) String() string {
	switch t.kind {
	case "watch":
		return "watching of " + clean(t.rule)
	case "pause":
		return "the probe " + clean(t.rule)
	}
	return "timing of all system calls"
}

// word is what is measured after the change is switched on or off.
func (t toggle) word(on bool) string {
	if on != (t.kind == "pause") {
		return "ON"
	}
	return "OFF"
}

// controlled is what an agent says about one change. See docs/user/control.md.
type controlled struct {
	ID, Kind, Rule string
	End            time.Time
}

// Toggle switches something off if this client has switched it on, or else on for a while. Changes of others continue. It
// returns what was done.
func (c *Client) Toggle(ctx context.Context, t toggle) (string, error) {
	body, err := c.control(ctx, http.MethodGet, "", nil)
	if err != nil {
		return "", err
	}
	var list struct {
		MaxSeconds float64 `json:"max_seconds"`
		Changes    []controlled
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return "", fmt.Errorf("reading what is switched on: %w", err)
	}
	ended, others := 0, 0
	for _, one := range list.Changes {
		if one.Kind != t.kind || one.Rule != t.rule {
			continue
		}
		if !c.begun[one.ID] {
			others++
			continue
		}
		if _, err := c.control(ctx, http.MethodDelete, "/"+url.PathEscape(one.ID), nil); err != nil {
			return "", err
		}
		delete(c.begun, one.ID)
		ended++
	}
	switch {
	case ended > 0 && others > 0:
		return fmt.Sprintf("STILL %s, by others: %s", t.word(true), t), nil
	case ended > 0:
		return fmt.Sprintf("%s: %s", t.word(false), t), nil
	}
	added, err := json.Marshal(map[string]any{"kind": t.kind, "rule": t.rule, "seconds": min(switchFor.Seconds(), list.MaxSeconds), "reason": "teescope top"})
	if err != nil {
		return "", err
	}
	if body, err = c.control(ctx, http.MethodPost, "", added); err != nil {
		return "", err
	}
	var one controlled
	if err := json.Unmarshal(body, &one); err != nil {
		return "", fmt.Errorf("reading what was switched on: %w", err)
	}
	if c.begun == nil {
		c.begun = map[string]bool{}
	}
	c.begun[one.ID] = true
	return fmt.Sprintf("%s until %s: %s", t.word(true), one.End.Local().Format("15:04:05"), t), nil
}

// maxControl is the maximum size of an answer about what is switched on, in bytes.
const maxControl = 1 << 20

// control sends a request to a path below /api/control.
func (c *Client) control(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.server.URL("api/control"+path), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.server.Explain(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxControl))
	if err != nil {
		return nil, c.server.Explain(err)
	}
	if resp.StatusCode/100 == 2 {
		return answer, nil
	}
	var said struct{ Error string }
	if json.Unmarshal(answer, &said) == nil && said.Error != "" {
		return nil, errors.New(clean(said.Error))
	}
	if resp.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("%s switches nothing on", c.Target())
	}
	return nil, c.server.ExplainStatus(resp.StatusCode, answer)
}

// ask makes a key that switches something the next request to the agent. The workload is the chosen one.
func (m model) ask(key string) (model, bool) {
	workload := m.detail.Workload
	switch m.page {
	case detailPage:
	case listPage:
		rows := m.rows()
		if len(rows) == 0 {
			return m, false
		}
		workload = rows[m.row].Workload
	default:
		return m, false
	}
	if key == "P" {
		m.naming, m.probe = true, ""
		return m, true
	}
	t, ok := toggleOf(key, workload)
	if ok {
		m.asked, m.said = &t, "switching "+t.String()
	}
	return m, ok
}

// named edits the name of a probe, which enter switches off, or on if this client has switched it off.
func (m model) named(key, text string) model {
	switch key {
	case "enter":
		m.naming = false
		if m.probe != "" {
			t := toggle{"pause", m.probe}
			m.asked, m.said = &t, "switching "+t.String()
		}
	case "esc":
		m.naming = false
	default:
		m.probe = edited(m.probe, key, text)
	}
	return m
}

// switched shows what a request has done, or why not.
func (m model) switched(said string, err error) model {
	if err != nil {
		said = "NOT SWITCHED: " + reason(err)
	}
	m.asked, m.said = nil, clean(said)
	return m
}
