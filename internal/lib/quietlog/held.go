// SPDX-License-Identifier: Apache-2.0

package quietlog

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// maxHeld bounds what is held, in bytes.
const maxHeld = 64 << 10

// Held is where to log while something else draws on the terminal. It keeps the first lines, which say
// what began to go wrong, and counts the rest.
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

// Release writes what was held.
func (h *Held) Release(w io.Writer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = h.text.WriteTo(w) // there is nobody else to tell
	if h.dropped > 0 {
		fmt.Fprintf(w, "%d more log lines were dropped\n", h.dropped)
		h.dropped = 0
	}
}
