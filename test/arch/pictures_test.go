// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"image/color"
	"image/png"
	"path"
	"strings"
	"testing"
)

// mostPicture is more than a picture of the page with a palette needs, in bytes.
const mostPicture = 150_000

// TestPicturesAreSmall finds pictures of documents that `make pictures` has not reduced to a palette. Everyone who clones the
// repository downloads each version of them.
func TestPicturesAreSmall(t *testing.T) {
	seen := 0
	for _, file := range walk(t) {
		if path.Ext(file) != ".png" || !strings.HasPrefix(file, "docs/") {
			continue
		}
		seen++
		text := read(t, file)
		c, err := png.DecodeConfig(strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if _, reduced := c.ColorModel.(color.Palette); !reduced {
			t.Errorf("%s has no palette: take it with make pictures", file)
		}
		if len(text) > mostPicture {
			t.Errorf("%s has %d bytes, at most %d", file, len(text), mostPicture)
		}
	}
	if seen < 3 {
		t.Errorf("found %d pictures in docs", seen)
	}
}
