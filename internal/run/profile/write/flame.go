// SPDX-License-Identifier: Apache-2.0

package write

import (
	"crypto/sha256"
	_ "embed" // the script of the page
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
)

const (
	width    = 1200.0 // of the graph, in CSS pixels
	row      = 17     // height of a frame
	top      = 44     // space for the title
	mostBars = 20000  // frames that are drawn; the narrowest are omitted
	colours  = 6      // of libraries
)

// style follows the theme of the reader. Text in a frame is dark on a light colour in both.
const style = `:root{color-scheme:light dark;--text:#1b1b1f;--dim:#5c5c66;--line:#fff;--back:#fff}
@media(prefers-color-scheme:dark){:root{--text:#e6e6ea;--dim:#a0a0aa;--line:#16161a;--back:#16161a}}
svg text{font:12px system-ui,sans-serif;fill:#1b1b1f;pointer-events:none}svg .t,svg .d{fill:var(--text)}svg .t{font-size:15px}svg .d{fill:var(--dim)}
svg .b{fill:var(--back)}svg g rect{stroke:var(--line);stroke-width:.5}svg g:hover rect,svg g:focus rect{stroke:var(--text);stroke-width:1}
.k{fill:#f0b27a}.u{fill:#c9c9d1}.c0{fill:#9ecae8}.c1{fill:#a8dcc4}.c2{fill:#e6c3da}.c3{fill:#f3dc8c}.c4{fill:#c5d59a}.c5{fill:#b9bdf0}
.g1{fill:#f8d3ca}.g2{fill:#f0a08e}.g3{fill:#e56a54}.l1{fill:#cfe1f3}.l2{fill:#98c1e6}.l3{fill:#5f9fd6}.same{fill:#e4e4e0}
svg g.hit rect{fill:#ff6fcf}svg g.off{display:none}
`

const pageStyle = `body{font:15px/1.5 system-ui,sans-serif;color:var(--text);background:var(--back);margin:1rem}
svg{display:block;width:100%;height:auto}svg g{cursor:pointer}label{margin-right:1rem}input,button{font:inherit}
`

//go:embed flame.js
var script string

// A bar is a frame in the graph.
type bar struct {
	depth  int
	from   int64   // in the unit of the shown value
	values []int64 // of the frame and all that it calls, one for each of the profile's values
	self   int64   // of samples whose innermost frame it is
	frame  uint32
}

// plan places the bars of a flame graph.
type plan struct {
	list  []*profile.Sample // in the order of the graph
	rank  []uint32          // of frames
	sums  [][]int64         // of each sample: the values of all before it
	main  int
	least int64 // smallest value that is drawn
	most  int   // bars
	bars  []bar // with the root at the depth 0
	depth int   // of the graph
}

// layout returns the bars of a picture.
func layout(p *profile.Profile) *plan { return place(p, mostBars, max(1, p.Total()/int64(width*5))) }

// place returns the bars of a flame graph from a value on. If there are more than may be, the narrowest are omitted.
func place(p *profile.Profile, most int, least int64) *plan {
	rank, _ := ranks(p, func(f profile.Frame) string { return f.Name() + "\x00" + f.Library })
	l := &plan{list: ordered(p, rank, false), rank: rank, main: p.Main, most: most}
	sums := make([]int64, len(p.Values))
	for _, s := range l.list {
		l.sums = append(l.sums, slices.Clone(sums))
		for i, v := range s.Values {
			sums[i] += v
		}
	}
	l.sums = append(l.sums, sums)
	for l.least = least; ; l.least *= 2 {
		l.bars, l.depth = l.bars[:0], 0
		if l.place(0, len(l.list), 0) {
			return l
		}
	}
}

// place adds the bars of the samples, which have the same frames up to a depth. It returns false if there are too many.
func (l *plan) place(begin, end, depth int) bool {
	at := func(i int) uint32 { return l.list[i].Stack[len(l.list[i].Stack)-1-depth] }
	for i := begin; i < end; {
		if len(l.list[i].Stack) <= depth {
			i++
			continue
		}
		next := i + 1
		for next < end && len(l.list[next].Stack) > depth && l.rank[at(next)] == l.rank[at(i)] {
			next++
		}
		if l.sums[next][l.main]-l.sums[i][l.main] >= l.least {
			if len(l.bars) >= l.most {
				return false
			}
			deeper := i
			for deeper < next && len(l.list[deeper].Stack) == depth+1 {
				deeper++
			}
			one := bar{depth, l.sums[i][l.main], slices.Clone(l.sums[next]), l.sums[deeper][l.main] - l.sums[i][l.main], at(i)}
			for k, v := range l.sums[i] {
				one.values[k] -= v
			}
			l.bars = append(l.bars, one)
			l.depth = max(l.depth, depth+1)
			if !l.place(i, next, depth+1) {
				return false
			}
		}
		i = next
	}
	return true
}

// class is the colour of a frame: of the kernel, unresolved, or by its library.
func class(f profile.Frame) string {
	switch {
	case f.Kernel:
		return "k"
	case !f.Resolved():
		return "u"
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(f.Library)) // never fails
	return fmt.Sprintf("c%d", h.Sum32()%colours)
}

// A look is how the frames of a graph are drawn.
type look struct {
	class   func(bar) string // the colour
	label   func(bar) string // text of the frame after its name
	caption func(least int64) string
}

// plain is the appearance of one profile.
func plain(p *profile.Profile) look {
	total, unit := float64(p.Total()), p.Values[p.Main].Unit
	return look{
		class: func(b bar) string { return class(p.Frames[b.frame]) },
		label: func(b bar) string {
			return fmt.Sprintf("%.2f %%, %d %s", 100*float64(b.values[p.Main])/total, b.values[p.Main], unit)
		},
		caption: func(least int64) string { return caption(p, least) },
	}
}

// writeSVG writes a picture without a script. A title on each frame has its share.
func writeSVG(w io.Writer, p *profile.Profile, title string) error {
	return graph(w, p, plain(p), title, style)
}

// graph writes the picture. The style is empty within a page, which has it.
func graph(w io.Writer, p *profile.Profile, of look, title, css string) error {
	total := float64(p.Total())
	l := layout(p)
	height := top + l.depth*row + 24
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d" role="img" aria-label="%s">`+"\n", width, height, width, height, text.HTML("Flame graph of "+title))
	if css != "" {
		fmt.Fprintf(&b, "<style>%s</style>", css)
	}
	fmt.Fprintf(&b, `<rect class="b" width="%.0f" height="%d"/><text class="t" x="4" y="18">%s</text><text class="d" x="4" y="36">%s</text>`+"\n", width, height,
		text.HTML(text.Short(text.Label(title), 150)), text.HTML(text.Short(of.caption(l.least), 190)))
	for _, r := range l.bars {
		f := p.Frames[r.frame]
		x, wide := width*float64(r.from)/total, width*float64(r.values[p.Main])/total
		y := top + (l.depth-1-r.depth)*row
		label := f.Name() + ", " + of.label(r)
		if f.Library != "" && f.Resolved() {
			label += ", " + f.Library
		}
		fmt.Fprintf(&b, `<g data-name="%s"><title>%s</title><rect class="%s" x="%.2f" y="%d" width="%.2f" height="%d"/>`, text.HTML(f.Name()), text.HTML(label), of.class(r), x, y, wide, row-1)
		if fits := int(wide / 7); fits >= 4 {
			fmt.Fprintf(&b, `<text x="%.2f" y="%d">%s</text>`, x+3, y+12, text.HTML(text.Short(f.Name(), fits)))
		}
		b.WriteString("</g>\n")
		if b.Len() > 64<<10 {
			if _, err := io.WriteString(w, b.String()); err != nil {
				return err
			}
			b.Reset()
		}
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// caption says what the graph shows and what it omits.
func caption(p *profile.Profile, least int64) string {
	total, unresolved := p.Total(), int64(0)
	for i := range p.Samples {
		if !p.Frames[p.Samples[i].Stack[0]].Resolved() {
			unresolved += p.Samples[i].Values[p.Main]
		}
	}
	return strings.Join(slices.Concat([]string{
		fmt.Sprintf("%d %s of %s", total, p.Values[p.Main].Unit, p.Values[p.Main].Type),
		fmt.Sprintf("unresolved %.2f %%", 100*float64(unresolved)/float64(total)),
		fmt.Sprintf("frames below %.3f %% are not drawn", 100*float64(least)/float64(total)),
	}, p.Notes), "; ")
}

// Policy is the content security policy of a page that writeHTML writes: only its own style and script.
func Policy() string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return base64.StdEncoding.EncodeToString(sum[:])
	}
	return fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; base-uri 'none'; form-action 'none'", hash(style+pageStyle), hash(script))
}

// writeHTML writes a page with the graph, which a click zooms and a field searches. Its policy allows only its own
// style and script.
func writeHTML(w io.Writer, p *profile.Profile, title string) error {
	return page(w, p, plain(p), title)
}

func page(w io.Writer, p *profile.Profile, of look, title string) error {
	css := style + pageStyle
	if _, err := fmt.Fprintf(w, `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width"><title>%s</title>
<style>%s</style></head><body>
<p><label>Search <input id="search" type="search" autocomplete="off"></label><button id="reset" type="button">Show all</button> <span id="found" role="status"></span></p>
`, Policy(), text.HTML(title), css); err != nil {
		return err
	}
	if err := graph(w, p, of, title, ""); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "<script>%s</script></body></html>\n", script)
	return err
}
