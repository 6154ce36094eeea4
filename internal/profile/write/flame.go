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
	"github.com/teescope/teescope/internal/profile"
)

const (
	width    = 1200.0 // of the graph, in CSS pixels
	row      = 17     // height of a frame
	top      = 44     // space for the title
	mostBars = 20000  // frames that are drawn; the narrowest are left out
	colours  = 6      // of libraries
)

// style follows the theme of the reader. Text in a frame is dark on a light colour in both.
const style = `:root{color-scheme:light dark;--text:#1b1b1f;--dim:#5c5c66;--line:#fff;--back:#fff}
@media(prefers-color-scheme:dark){:root{--text:#e6e6ea;--dim:#a0a0aa;--line:#16161a;--back:#16161a}}
svg text{font:12px system-ui,sans-serif;fill:#1b1b1f;pointer-events:none}svg .t,svg .d{fill:var(--text)}svg .t{font-size:15px}svg .d{fill:var(--dim)}
svg .b{fill:var(--back)}svg g rect{stroke:var(--line);stroke-width:.5}svg g:hover rect,svg g:focus rect{stroke:var(--text);stroke-width:1}
.k{fill:#f0b27a}.u{fill:#c9c9d1}.c0{fill:#9ecae8}.c1{fill:#a8dcc4}.c2{fill:#e6c3da}.c3{fill:#f3dc8c}.c4{fill:#c5d59a}.c5{fill:#b9bdf0}
svg g.hit rect{fill:#ff6fcf}svg g.off{display:none}
`

const pageStyle = `body{font:15px/1.5 system-ui,sans-serif;color:var(--text);background:var(--back);margin:1rem}
svg{display:block;width:100%;height:auto}svg g{cursor:pointer}label{margin-right:1rem}input,button{font:inherit}
`

//go:embed flame.js
var script string

// A bar is a frame in the graph.
type bar struct {
	depth       int
	from, value int64 // in the unit of the values
	frame       uint32
}

// layout returns the bars of a flame graph, with the root at the depth 0, and the smallest value that is drawn.
func layout(p *profile.Profile) (bars []bar, least int64, depth int) {
	rank, _ := ranks(p, func(f profile.Frame) string { return f.Name() + "\x00" + f.Library })
	list := ordered(p, rank, false)
	var sums []int64 // of the samples before each
	sum := int64(0)
	for _, s := range list {
		sums = append(sums, sum)
		sum += s.Values[p.Main]
	}
	sums = append(sums, sum)
	for least = max(1, sum/int64(width*5)); ; least *= 2 {
		bars, depth = bars[:0], 0
		if place(&bars, &depth, list, sums, rank, 0, least) {
			return bars, least, depth
		}
	}
}

// place adds the bars of the samples, which have the same frames up to a depth. It returns false if there are too many.
func place(bars *[]bar, deepest *int, list []*profile.Sample, sums []int64, rank []uint32, depth int, least int64) bool {
	at := func(i int) uint32 { return list[i].Stack[len(list[i].Stack)-1-depth] }
	for i := 0; i < len(list); {
		if len(list[i].Stack) <= depth {
			i++
			continue
		}
		end := i + 1
		for end < len(list) && len(list[end].Stack) > depth && rank[at(end)] == rank[at(i)] {
			end++
		}
		if value := sums[end] - sums[i]; value >= least {
			if len(*bars) >= mostBars {
				return false
			}
			*bars = append(*bars, bar{depth, sums[i], value, at(i)})
			*deepest = max(*deepest, depth+1)
			if !place(bars, deepest, list[i:end], sums[i:end+1], rank, depth+1, least) {
				return false
			}
		}
		i = end
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

// writeSVG writes a picture without a script. A title on each frame has its share.
func writeSVG(w io.Writer, p *profile.Profile, title string) error {
	return graph(w, p, title, style)
}

// graph writes the picture. The style is empty within a page, which has it.
func graph(w io.Writer, p *profile.Profile, title, css string) error {
	bars, least, depth := layout(p)
	total, v := p.Total(), p.Values[p.Main]
	height := top + depth*row + 24
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d" role="img" aria-label="%s">`+"\n", width, height, width, height, text.HTML("Flame graph of "+title))
	if css != "" {
		fmt.Fprintf(&b, "<style>%s</style>", css)
	}
	fmt.Fprintf(&b, `<rect class="b" width="%.0f" height="%d"/><text class="t" x="4" y="18">%s</text><text class="d" x="4" y="36">%s</text>`+"\n", width, height,
		text.HTML(text.Short(text.Label(title), 150)), text.HTML(text.Short(caption(p, least), 190)))
	for _, r := range bars {
		f := p.Frames[r.frame]
		x, wide := width*float64(r.from)/float64(total), width*float64(r.value)/float64(total)
		y := top + (depth-1-r.depth)*row
		label := fmt.Sprintf("%s, %.2f %%, %d %s", f.Name(), 100*float64(r.value)/float64(total), r.value, v.Unit)
		if f.Library != "" && f.Resolved() {
			label += ", " + f.Library
		}
		fmt.Fprintf(&b, `<g data-name="%s"><title>%s</title><rect class="%s" x="%.2f" y="%d" width="%.2f" height="%d"/>`, text.HTML(f.Name()), text.HTML(label), class(f), x, y, wide, row-1)
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

// caption says what the graph shows and what it leaves out.
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

// Policy is the content security policy of a page that writeHTML writes: nothing but its own style and script.
func Policy() string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return base64.StdEncoding.EncodeToString(sum[:])
	}
	return fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; base-uri 'none'; form-action 'none'", hash(style+pageStyle), hash(script))
}

// writeHTML writes a page with the graph, which a click zooms and a field searches. Its policy allows nothing but its own
// style and script.
func writeHTML(w io.Writer, p *profile.Profile, title string) error {
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
	if err := graph(w, p, title, ""); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "<script>%s</script></body></html>\n", script)
	return err
}
