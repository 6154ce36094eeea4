// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"io"
)

// end is the last line of an OpenMetrics text.
const end = "# EOF\n"

// family is the part of a text about one metric family: comments, and samples.
type family struct{ name, comments, samples []byte }

// unchanged returns the samples of a family.
func unchanged(f family) []byte { return f.samples }

// families splits a text. Every family begins with its comments.
func families(text []byte, each func(family)) {
	text = bytes.TrimSuffix(text, []byte(end))
	for len(text) > 0 {
		f := family{comments: leading(text, true)}
		text = text[len(f.comments):]
		f.samples = leading(text, false)
		text = text[len(f.samples):]
		if words := bytes.Fields(f.comments[:max(0, bytes.IndexByte(f.comments, '\n'))]); len(words) > 2 {
			f.name = words[2] // of "# HELP name" or "# TYPE name"
		}
		each(f)
	}
}

// leading returns the lines at the start of a text that are comments, or those that are not comments.
func leading(text []byte, comments bool) []byte {
	n := 0
	for line := range bytes.Lines(text) {
		if (line[0] == '#') != comments {
			break
		}
		n += len(line)
	}
	return text[:n]
}

// merge writes two texts of the same format as one. The samples of a family that both have must follow each other. samples returns
// the samples of a family of the first text as they are written.
func merge(w io.Writer, first, second []byte, samples func(family) []byte) error {
	var order [][]byte
	added := map[string]family{}
	families(second, func(f family) {
		order = append(order, f.name)
		added[string(f.name)] = f
	})
	var err error
	write := func(parts ...[]byte) {
		for _, part := range parts {
			if err == nil {
				_, err = w.Write(part)
			}
		}
	}
	families(first, func(f family) {
		write(f.comments, samples(f), added[string(f.name)].samples)
		delete(added, string(f.name))
	})
	for _, name := range order {
		if f, ok := added[string(name)]; ok {
			write(f.comments, f.samples)
		}
	}
	if bytes.HasSuffix(first, []byte(end)) || bytes.HasSuffix(second, []byte(end)) {
		write([]byte(end))
	}
	return err
}
