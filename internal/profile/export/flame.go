package export

import (
	"bufio"
	_ "embed"
	"fmt"
	"hash/fnv"
	"html"
	"io"
	"math"

	"github.com/linerate/linerate/internal/profile"
)

//go:embed flame.css
var flameCSS string

//go:embed flame.js
var flameJS string

// flameLeast is the share of the samples below which a frame is not drawn; the page says how many
// samples that leaves out.
const flameLeast = 0.001

// rowHeight is the height of one frame in pixels.
const rowHeight = 18

// Flame writes a page with a flame graph of a profile, and a table of its stages. The page needs no
// network; without scripts it lacks only zoom and search.
func Flame(w io.Writer, p *profile.Profile, title string) error {
	return flame(w, p, title, func(f int) (string, string) { return stageColour(p, f), "" })
}

// FlameDifference writes the same page of the later of two profiles. A function is red where it
// costs more than before and blue where less, beyond chance; all others are grey.
func FlameDifference(w io.Writer, after *profile.Profile, c *profile.Comparison, title string) error {
	changes := make(map[string]profile.Change)
	largest := 0.0
	for _, r := range c.Functions {
		changes[r.Name] = r
		if r.Differs {
			largest = max(largest, math.Abs(r.Difference))
		}
	}
	return flame(w, after, title, func(f int) (string, string) {
		if f < 0 {
			return "#ddd", ""
		}
		r, known := changes[after.Functions[f].Name]
		note := fmt.Sprintf("own cost %.3g before, %.3g after, in %s", r.Before, r.After, c.Unit)
		switch {
		case !known:
			return "#ddd", ""
		case !r.Differs:
			return "#ddd", note + ": no difference beyond chance"
		}
		pale := int(200 - 130*math.Abs(r.Difference)/largest)
		if r.Difference > 0 {
			return fmt.Sprintf("rgb(255,%d,%d)", pale, pale), note
		}
		return fmt.Sprintf("rgb(%d,%d,255)", pale, pale), note
	})
}

// stageColour gives every stage a hue of its own.
func stageColour(p *profile.Profile, f int) string {
	if f < 0 {
		return "#ccc"
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.Functions[f].Stage)) // a hash takes everything
	return fmt.Sprintf("hsl(%d,60%%,72%%)", h.Sum32()%360)
}

func flame(w io.Writer, p *profile.Profile, title string, paint func(int) (colour, note string)) error {
	b := bufio.NewWriter(w)
	root, pruned := p.Tree(uint64(flameLeast * float64(p.Busy)))
	fmt.Fprintf(b, "<!doctype html>\n<html lang=en><meta charset=utf-8><title>%s</title><style>%s</style>\n<h1>%s</h1>\n",
		html.EscapeString(title), flameCSS, html.EscapeString(title))
	fmt.Fprintf(b, "<p>%d busy samples of %s. Wide is much time; a frame stands on its caller. %d samples in frames "+
		"below %.1f %% are not drawn.", p.Busy, html.EscapeString(p.Event), pruned, 100*flameLeast)
	if p.Timer {
		fmt.Fprintf(b, " The event is a timer: %d samples of code with interrupts off are shown under the callers.", p.Moved)
	}
	fmt.Fprintf(b, "</p>\n<p class=tools><input id=find placeholder=\"search\"> <button id=out>whole</button> "+
		"<span id=found></span></p>\n")
	depth := 0
	var deepest func(n *profile.Node, at int)
	deepest = func(n *profile.Node, at int) {
		depth = max(depth, at)
		for _, c := range n.Calls {
			deepest(c, at+1)
		}
	}
	deepest(root, 0)
	fmt.Fprintf(b, "<div id=flame style=\"height:%dpx\">\n", (depth+1)*rowHeight)
	all := float64(max(1, root.Samples))
	var draw func(n *profile.Node, at int, left float64)
	draw = func(n *profile.Node, at int, left float64) {
		colour, note := paint(n.Function)
		stage := ""
		if n.Function >= 0 {
			stage = " · " + p.Functions[n.Function].Stage
		}
		if note != "" {
			note = "\n" + note
		}
		width := 100 * float64(n.Samples) / all
		fmt.Fprintf(b, "<div class=f data-n=%d style=\"bottom:%dpx;left:%.4f%%;width:%.4f%%;background:%s\" "+
			"title=\"%s\">%s</div>\n",
			n.Samples, at*rowHeight, left, width, colour, html.EscapeString(fmt.Sprintf("%s%s\n%d samples, %.2f %%, own %d%s",
				n.Name, stage, n.Samples, width, n.Self, note)), html.EscapeString(n.Name))
		for _, c := range n.Calls {
			draw(c, at+1, left)
			left += 100 * float64(c.Samples) / all
		}
	}
	draw(root, 0, 0)
	fmt.Fprintf(b, "</div>\n<table><tr><th>stage<th>share<th>95 %%<th>ns/packet</tr>\n")
	for _, r := range p.Stages {
		price := ""
		if r.PerPacket != nil {
			price = fmt.Sprintf("%.1f (%.1f to %.1f)", *r.PerPacket, *r.PerPacketLow, *r.PerPacketHigh)
		}
		fmt.Fprintf(b, "<tr><td>%s<td>%.2f %%<td>%.2f to %.2f %%<td>%s</tr>\n", html.EscapeString(r.Name), 100*r.Share,
			100*r.ShareLow, 100*r.ShareHigh, price)
	}
	fmt.Fprintf(b, "</table>\n<script>%s</script>\n</html>\n", flameJS)
	return flushed(b, "flame graph")
}
