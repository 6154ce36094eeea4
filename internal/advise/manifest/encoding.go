// SPDX-License-Identifier: Apache-2.0

package manifest

import "bytes"

// notUTF8 returns the encoding that a byte order mark at the beginning stands for, or "". Gramine refuses such a file.
func notUTF8(source []byte) string {
	switch {
	case bytes.HasPrefix(source, []byte("\xff\xfe")), bytes.HasPrefix(source, []byte("\xfe\xff")):
		return "UTF-16"
	case bytes.HasPrefix(source, []byte("\xef\xbb\xbf")):
		return "UTF-8 with a byte order mark"
	}
	return ""
}
