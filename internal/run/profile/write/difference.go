// SPDX-License-Identifier: Apache-2.0

package write

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/teescope/teescope/internal/run/profile"
)

// Difference writes a flame graph of two profiles, as svg or html. The width of a frame is the mean of its shares of both sides,
// so that code of one side is seen too. The colour says how many times its share has grown or shrunk.
func Difference(w io.Writer, format string, before, after *profile.Profile, title string) error {
	if !Graph(format) {
		return fmt.Errorf("%q: a difference is drawn as svg or html", format)
	}
	p, err := profile.Join(before, after)
	if err != nil {
		return err
	}
	of := compared(p, fmt.Sprintf("A: %s, B: %s", amount(before), amount(after)))
	out := bufio.NewWriterSize(w, 64<<10)
	if format == "html" {
		err = page(out, p, of, title)
	} else {
		err = graph(out, p, of, title, style)
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

// Graph reports whether a format is a flame graph.
func Graph(format string) bool { return format == "svg" || format == "html" }

func amount(p *profile.Profile) string {
	v := p.Values[p.Main]
	return fmt.Sprintf("%d %s of %s", p.Total(), v.Unit, v.Type)
}

// compared is the appearance of a joined profile.
func compared(p *profile.Profile, sides string) look {
	return look{
		class: func(b bar) string { return changeClass(b.values[profile.BeforeValue], b.values[profile.AfterValue]) },
		label: func(b bar) string {
			was, is := float64(b.values[profile.BeforeValue])/1e7, float64(b.values[profile.AfterValue])/1e7
			return fmt.Sprintf("A %.2f %%, B %.2f %%, %+.2f points", was, is, is-was)
		},
		caption: func(least int64) string {
			return strings.Join(append([]string{
				sides, "red: a larger share in B, blue: a smaller one, from 1.2, 2 and 5 times on",
				fmt.Sprintf("frames below %.3f %% are not drawn", 100*float64(least)/float64(p.Total())),
			}, p.Notes...), "; ")
		},
	}
}

// changeClass is the colour of a change: by how many times the larger share is the smaller one.
func changeClass(before, after int64) string {
	kind, small, large := "g", before, after
	if after < before {
		kind, small, large = "l", after, before
	}
	switch {
	case 5*large < 6*small:
		return "same"
	case large < 2*small:
		return kind + "1"
	case large < 5*small:
		return kind + "2"
	}
	return kind + "3"
}
