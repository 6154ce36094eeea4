// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
	"testing"
)

// Editors of Windows save such files. The message about their first character would not say what to do.
func TestEncodings(t *testing.T) {
	for source, want := range map[string]string{
		"\xff\xfes\x00g\x00":           "app: the file is in UTF-16: save it as UTF-8",
		"\xfe\xff\x00s\x00g":           "app: the file is in UTF-16: save it as UTF-8",
		"\xef\xbb\xbfsgx.debug = true": "app: the file is in UTF-8 with a byte order mark: save it as UTF-8 without",
	} {
		if _, err := Parse([]byte(source), Options{Name: "app"}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", source, err, want)
		}
	}
}
