// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"bytes"
	"fmt"

	"github.com/teescope/teescope/internal/run/profile"
)

// texts keeps one copy of each path and name.
type texts struct {
	known     map[string]string
	bytes     int
	most      int  // bytes of all
	exhausted bool // a text was left out
}

// of returns the text before the first byte of 0. It is empty if there is no room for it.
func (t *texts) of(b []byte) string {
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	if have, ok := t.known[string(b)]; ok {
		return have
	}
	if t.bytes += len(b) + 64; t.bytes > t.most {
		t.exhausted = true
		return ""
	}
	one := string(b)
	t.known[one] = one
	return one
}

// err returns an error if a text was left out.
func (t *texts) err() error {
	if t.exhausted {
		return fmt.Errorf("its paths and names have more than %d MiB, %w", t.most>>20, profile.ErrLimit)
	}
	return nil
}
