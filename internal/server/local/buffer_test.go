// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"testing"
)

// A text that has grown by a tenth since the last one is read without another buffer.
func TestTextsFitIntoTheirBuffer(t *testing.T) {
	for _, last := range []int64{0, 1, 4096, 1 << 20} {
		b := bufferFor(last)
		size := b.Cap()
		text := bytes.Repeat([]byte("x"), int(last+last/10))
		if _, err := b.ReadFrom(bytes.NewReader(text)); err != nil || b.Len() != len(text) {
			t.Fatalf("%d bytes, %v", b.Len(), err)
		}
		if b.Cap() != size {
			t.Errorf("a buffer of %d bytes for %d bytes has grown to %d", size, len(text), b.Cap())
		}
	}
}
