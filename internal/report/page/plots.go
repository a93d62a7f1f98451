package page

import "strconv"

// ladder writes the section of the trials: a row with a bar for each, the key, and a table.
func (s *sheet) ladder(l *ladder) {
	if l == nil {
		return
	}
	s.put(`
<section>
  <h2>What was tried</h2>
  <p class="soft">The effect of each change as a factor, with its interval. ` +
		`The axis is stretched around the dashed line, which is no change`)
	s.with(`; a bar must lie wholly to the right of the solid line, {}, to be kept`, l.Needs)
	s.put(`.</p>
  <div class="rung scale"><span></span><span></span>
    <svg height="18">`)
	for _, t := range l.Ticks {
		s.put(`<text x="{}" y="12" text-anchor="middle">{}</text>`, t.At, t.Label)
	}
	s.put(`</svg><span></span></div>
  
  `)
	for _, r := range l.Rows {
		s.rung(l, r)
	}
	s.put(`
  <ul class="legend key"><li><svg><svg class="mark" x="8" y="8">` +
		`<path class="v kept" d="M0-6 6 0 0 6-6 0Z"/></svg></svg>kept: proved</li>`)
	s.put(`<li><svg><svg class="mark" x="8" y="8">` +
		`<path class="v" d="M-5 0A5 5 0 1 0 5 0 5 5 0 1 0-5 0Z"/></svg></svg>reverted: not proved</li>`)
	s.put(`<li><svg><svg class="mark" x="8" y="8">` +
		`<path class="v worse" d="M-6-5H6L0 6Z"/></svg></svg>reverted: worse</li>`)
	s.put(`<li><svg><line class="one" x1="8" x2="8" y1="0" y2="14"/></svg>no change</li>`)
	s.with(`<li><svg><line class="need" x1="8" x2="8" y1="0" y2="14"/></svg>needed: {}</li>`, l.Needs)
	s.put(`</ul>
  <details><summary>as a table</summary><div class="scroll"><table>
    <tr><th></th><th>side</th><th>knob</th><th>from</th><th>to</th>` +
		`<th class="r">pairs</th><th class="r">effect</th><th>interval</th><th>verdict</th></tr>
    `)
	for _, r := range l.Rows {
		s.put(`<tr><td>{}</td><td>{}</td><td class="mono">{}</td><td class="mono">{}</td><td class="mono">{}</td>`,
			r.Number, r.Side, r.Knob, r.From, r.To)
		s.put(`<td class="r">{}</td><td class="r strong">{}</td><td>{}</td><td>{}</td></tr>
    `, r.Pairs, r.Effect, r.Interval, r.Verdict)
	}
	s.put(`
  </table></div></details>
</section>
`)
}

// rung writes one row of the ladder: the change, its bar, its number, its reason.
func (s *sheet) rung(l *ladder, r rung) {
	s.put(`<div class="rung {}">
    <div class="n">{}</div>
    <div><div class="knob">{}</div>`, r.Class, r.Number, r.Knob)
	if r.Side != "" {
		s.put(`<div class="value">{}: {} → {}</div>`, r.Side, r.From, r.To)
	}
	s.put(`</div>
    <svg height="26" role="img" aria-label="effect {}, {}">
      <line class="one" x1="{}" x2="{}" y1="0" y2="26"/>`, r.Effect, r.Interval, l.One, l.One)
	if l.Need != "" {
		s.put(`<line class="need" x1="{}" x2="{}" y1="0" y2="26"/>`, l.Need, l.Need)
	}
	s.put(`
      `)
	if r.Bar {
		s.put(`<line class="stem" x1="{}" x2="{}" y1="13" y2="13"/>`+
			`<line class="span" x1="{}" x2="{}" y1="13" y2="13"/>`, l.One, r.Point, r.Low, r.High)
		s.put(`<svg class="mark" x="{}" y="13"><path d="{}"/></svg>
      `, r.Point, r.Shape)
		if r.OpenLow {
			s.put(`<text x="0" y="17">◂</text>`)
		}
		if r.OpenHigh {
			s.put(`<text x="100%" y="17" text-anchor="end">▸</text>`)
		}
	}
	s.put(`
    </svg>
    <div>`)
	if r.Effect != "" {
		s.put(`<span class="effect">{}</span> <span class="said">{}</span><div class="interval">`, r.Effect, r.Verdict)
		s.with(`{} · `, r.Interval)
		s.with(`{} pairs`, r.Pairs)
		s.put(`</div>`)
	} else {
		s.put(`<span class="said">{}</span>`, r.Verdict)
	}
	s.put(`</div>
    `)
	s.with(`<div class="why">{}</div>`, r.Reason)
	s.put(`
  </div>
  `)
}

// series writes the section of the segments: the plot in the order of measuring, the key, and the
// segments that do not count.
func (s *sheet) series(t *series) {
	if t == nil {
		return
	}
	s.put(`
<section>
  <h2>Every measurement in order</h2>
  <p class="soft">Each mark is one segment with new connections: ` +
		`hollow without the change under trial, filled with it.`)
	if t.Cut {
		s.put(` The axis does not begin at zero.`)
	}
	s.with(` The wait of {} before the soak is left out.`, t.LeftOut)
	s.put(`</p>
  <div class="scroll"><div class="plot timeline">
    `)
	s.timeline(t)
	s.put(`
  </div></div>
  <ul class="legend"><li><svg><svg class="mark" x="8" y="8">` +
		`<path class="a" d="M-4 0A4 4 0 1 0 4 0 4 4 0 1 0-4 0Z"/></svg></svg>A: without</li>`)
	s.put(`<li><svg><svg class="mark" x="8" y="8"><path class="b" d="M0-5.5 5.5 0 0 5.5-5.5 0Z"/></svg></svg>B: with</li>`)
	if t.Searched {
		s.put(`<li><svg><svg class="mark" x="8" y="8">` +
			`<path class="level" d="M-3.5-3.5H3.5V3.5H-3.5Z"/></svg></svg>looking for the level</li>`)
	}
	if len(t.Discarded) > 0 {
		s.put(`<li><svg><svg class="mark" x="8" y="8">` +
			`<path class="discarded" d="M-4-4 4 4M-4 4 4-4"/></svg></svg>does not count</li>`)
	}
	s.put(`<li>✓ kept</li><li>↺ taken back</li><li>numbers: the list above</li></ul>
  `)
	if len(t.Discarded) > 0 {
		s.put(`<details open><summary>what does not count, and why</summary><div class="scroll"><table>
    <tr><th class="r">at</th><th>part</th><th class="r">measured</th><th>reason</th></tr>
    `)
		for _, d := range t.Discarded {
			s.put(`<tr><td class="r">{}</td><td>{}</td><td class="r">{}</td><td>{}</td></tr>
    `, d.At, d.Part, d.Value, d.Why)
		}
		s.put(`
  </table></div></details>`)
	}
	s.put(`
</section>
`)
}

// timeline writes the plot with its left axis. Later elements lie above earlier ones: bands, lines,
// marks, labels of the lines.
func (s *sheet) timeline(t *series) {
	height, bottom := strconv.Itoa(t.Height), strconv.Itoa(t.PlotBottom)
	s.put(`<div class="axis"><svg height="{}">`, height)
	for _, y := range t.Ticks {
		s.put(`<text x="100%" y="{}" dy="4">{}</text>`, y.At, y.Label)
	}
	s.put(`</svg></div>
    <svg height="{}" role="img" aria-label="the measure of every segment over time">
      
      `, height)
	for _, b := range t.Bands {
		s.band(b, bottom)
	}
	s.put(`
      `)
	for _, y := range t.Ticks {
		s.put(`<line class="grid" x1="0" x2="100%" y1="{}" y2="{}"/>`, y.At, y.At)
	}
	s.put(`
      `)
	for _, l := range t.Levels {
		s.put(`<line class="level {}" x1="0" x2="100%" y1="{}" y2="{}"/>`, l.Class, l.Y, l.Y)
	}
	s.put(`
      `)
	for _, p := range t.Points {
		s.put(`<svg class="mark" x="{}" y="{}"><path class="{}" d="{}"><title>{}</title></path></svg>
      `, p.X, p.Y, p.Class, p.Shape, p.Title)
	}
	s.put(`
      `)
	for _, l := range t.Levels {
		s.put(`<text class="level {}" x="100%" y="{}" text-anchor="end">{}</text>`, l.Class, l.LabelY, l.Text)
	}
	s.put(`
      `)
	for _, x := range t.Times {
		s.put(`<text x="{}" y="{}" dy="18" text-anchor="{}">{}</text>`, x.At, bottom, x.Anchor, x.Label)
	}
	s.put(`
    </svg>`)
}

// band writes one part of the experiment behind the marks, down to the bottom of the plot.
func (s *sheet) band(b band, bottom string) {
	class := b.Mark
	if b.Odd {
		class = "odd " + class
	}
	s.put(`<g><title>{}</title><rect class="band {}" x="{}" y="0" width="{}" height="{}" rx="3"/>
        <text x="{}" y="14" text-anchor="middle">{}</text>
        `, b.Title, class, b.X, b.Width, bottom, b.Middle, b.Label)
	if b.Mark != "" {
		became := "↺"
		if b.Mark == "kept" {
			became = "✓"
		}
		s.put(`<text class="mark {}" x="{}" y="29" text-anchor="middle">{}</text>`, b.Mark, b.Middle, became)
	}
	s.put(`</g>
      `)
}
