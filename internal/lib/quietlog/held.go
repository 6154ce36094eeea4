// SPDX-License-Identifier: Apache-2.0

package quietlog

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// maxHeld is the maximum size of the held lines, in bytes.
const maxHeld = 64 << 10

// Held keeps log lines while the terminal shows something else. It keeps the first lines, which show the first fault,
// and counts the rest.
type Held struct {
	mu      sync.Mutex
	text    bytes.Buffer
	dropped int
}

// Write keeps a line.
func (h *Held) Write(line []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.text.Len()+len(line) > maxHeld {
		h.dropped++
		return len(line), nil
	}
	return h.text.Write(line)
}

// Release writes the held lines.
func (h *Held) Release(w io.Writer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = h.text.WriteTo(w) // no other output is left to report an error
	if h.dropped > 0 {
		fmt.Fprintf(w, "%d more log lines were dropped\n", h.dropped)
		h.dropped = 0
	}
}
