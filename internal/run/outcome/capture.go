// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"fmt"
	"strings"
	"sync"
)

const (
	maxHead = 1 << 20
	maxTail = 3 << 20
)

// cutMark begins the line that replaces what Capture has dropped. Figures after it belong to no test before it.
const cutMark = "[teescope: "

// Capture keeps the first MiB and the last 3 MiB of an output. Benchmarks print their figures at the end, and
// what they ran at the beginning. The zero value is ready, and its methods may be called at the same time.
type Capture struct {
	mu   sync.Mutex
	head []byte
	// ring has what follows the head. Once it is full, next is its oldest byte.
	ring    []byte
	next    int
	dropped int64
}

// Write keeps data, and drops older data in the middle when there is too much. It returns no error.
func (c *Capture) Write(data []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(data)
	space := min(maxHead-len(c.head), n)
	c.head = append(c.head, data[:space]...)
	data = data[space:]
	if more := len(data) - maxTail; more > 0 { // a single write larger than the tail
		c.dropped += int64(more)
		data = data[more:]
	}
	grown := min(maxTail-len(c.ring), len(data))
	c.ring = append(c.ring, data[:grown]...)
	data = data[grown:]
	c.dropped += int64(len(data))
	for len(data) > 0 {
		copied := copy(c.ring[c.next:], data)
		data = data[copied:]
		c.next = (c.next + copied) % maxTail
	}
	return n, nil
}

// Dropped returns the number of bytes that are not kept.
func (c *Capture) Dropped() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropped
}

// Bytes returns a copy of the kept output. If bytes were dropped, a line says how many, and the lines that it cuts are omitted.
func (c *Capture) Bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := append(append([]byte{}, c.ring[c.next:]...), c.ring[:c.next]...)
	if c.dropped == 0 {
		return append(append([]byte{}, c.head...), tail...)
	}
	head := string(c.head[:lastLine(c.head)])
	from := strings.IndexByte(string(tail), '\n') + 1
	left := c.dropped + int64(len(c.head)-len(head)) + int64(from)
	return append(fmt.Appendf([]byte(head), "%s%d bytes of output left out]\n", cutMark, left), tail[from:]...)
}

// lastLine returns where the last complete line ends.
func lastLine(data []byte) int { return strings.LastIndexByte(string(data), '\n') + 1 }
