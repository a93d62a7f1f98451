package page

// page writes the whole page: one function for each section, in the order of reading.
func (s *sheet) page(v view) {
	s.head(v)
	s.before(v)
	s.put("\n")
	s.findings(v.Findings)
	s.put("\n")
	s.ladder(v.Ladder)
	s.put("\n")
	s.series(v.Series)
	s.put("\n")
	s.ablation(v.Ablation)
	s.put("\n")
	s.with(`
<section>
  <h2>Do the changes together have the effect of their single trials?</h2>
  <p>{}</p>
</section>
`, v.Together)
	s.with(`
<section>
  <h2>Does the gain last?</h2>
  <p>{}</p>
</section>
`, v.Soaked)
	s.again(v.Again)
	s.put("\n")
	s.changes(v)
	s.put("\n")
	s.list("Warnings", v.Warnings)
	s.put("\n")
	s.list("How this was proved", v.Method)
	s.foot(v)
}

// head writes the page up to the verdict.
func (s *sheet) head(v view) {
	s.put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; `+
		`base-uri 'none'; form-action 'none'">
<title>{}: {} → {} · linerate</title>
`, v.Verdict, v.Host, v.Target)
	s.put("<style>\n")
	s.put(style)
	s.put("</style>\n")
	s.put(`</head>
<body>
<main>
<header>
  <p class="path"><span>{} → {}</span><span>goal: {}</span><span>{}</span>`, v.Host, v.Target, v.Goal, v.Made)
	s.with(`<span>took {}</span>`, v.Took)
	s.put(`</p>
  <h1><span class="verdict {}">{}</span> {}</h1>
</header>
`, v.Tone, v.Verdict, v.Sentence)
}

// before writes the gain, the bars of before and after, and the guard-rails.
func (s *sheet) before(v view) {
	if len(v.Bars) == 0 {
		return
	}
	s.put(`
<section>
  <div class="hero">
    <div>
      `)
	s.gain(v)
	s.put(`
    </div>
    <div>
      `)
	for _, b := range v.Bars {
		s.put(`<svg height="54" role="img" aria-label="{} {}">
        <text class="barlabel" x="0" y="15">{}</text><text class="barvalue" x="100%" y="15" text-anchor="end">{}</text>
        `, b.Label, b.Value, b.Label, b.Value)
		s.put(`<rect class="band" x="0" y="23" width="100%" height="22" rx="4"/>`+
			`<rect class="{}" x="0" y="23" width="{}" height="22" rx="4"/>
      </svg>`, b.Class, b.Width)
	}
	s.put(`
    </div>
  </div>
  `)
	if len(v.Rows) > 1 {
		s.put(`
  <details open><summary>what else changed</summary>
  <div class="scroll"><table>
    <tr><th></th><th class="r">before</th><th class="r">after</th><th>change</th><th>allowed</th><th></th></tr>
    `)
		for _, r := range v.Rows {
			s.put(`<tr><td>{}</td><td class="r">{}</td><td class="r strong">{}</td><td>{}</td><td>{}</td><td>{}</td></tr>
    `, r.Name, r.Before, r.After, r.Change, r.Allowed, r.Held)
		}
		s.put(`
  </table></div></details>`)
	}
	s.put(`
</section>
`)
}

// gain writes the effect of the kept set as one large number, with its confidence.
func (s *sheet) gain(v view) {
	if v.Effect == "" {
		s.put(`<div class="number quiet">no change</div><p class="soft">every setting is as it was</p>`)
		return
	}
	s.put(`<div class="number {}">{}</div>
      <p class="soft">{}`, v.Tone, v.Effect, v.Interval)
	if v.Confidence != "" {
		if v.Interval != "" {
			s.put(" ")
		}
		s.put(`at {} confidence`, v.Confidence)
	}
	s.put(`, from {} pairs measured after all trials</p>
      `, v.Pairs)
}

// findings writes the diagnosis before the first change.
func (s *sheet) findings(all []findingView) {
	if len(all) == 0 {
		return
	}
	s.put(`
<section>
  <h2>What limited it</h2>
  <p class="soft">The diagnosis before the first change, with its evidence.</p>
  `)
	for _, f := range all {
		s.put(`<div class="finding {}">
    <p><span class="code">{}</span> <span class="soft">· {} · {}</span></p>
    <p>{}</p>
    `, f.Class, f.Code, f.Where, f.Sure, f.Title)
		if len(f.Evidence) > 0 {
			s.put(`<details open><summary>evidence</summary><div class="scroll"><table>
      `)
			for _, e := range f.Evidence {
				s.put(`<tr><td>{}</td><td class="r strong">{}</td><td class="soft">{}</td></tr>
      `, e.Name, e.Value, e.Source)
			}
			s.put(`
    </table></div></details>`)
		}
		s.put(`
    `)
		if len(f.Rejected) > 0 {
			s.put(`<details><summary>ruled out</summary>`)
			s.items(f.Rejected)
			s.put(`</details>`)
		}
		s.put(`
    `)
		s.with(`<p class="soft">{}</p>`, f.Remedy)
		s.put(`
  </div>
  `)
	}
	s.put(`
</section>
`)
}

// ablation writes the table of the kept changes that were measured against the kept set without
// them.
func (s *sheet) ablation(all []ablationView) {
	if len(all) == 0 {
		return
	}
	s.put(`
<section>
  <h2>Is each kept change still needed beside the other changes?</h2>
  <div class="scroll"><table><tr><th>side</th><th>knob</th><th class="r">effect</th><th>interval</th><th></th></tr>
  `)
	for _, a := range all {
		s.put(`<tr><td>{}</td><td class="mono">{}</td><td class="r">{}</td><td>{}</td><td>{}</td></tr>`, a.Side, a.Knob,
			a.Effect, a.Interval, a.Result)
	}
	s.put(`
  </table></div>
</section>
`)
}

// again writes the result of judging the segments again.
func (s *sheet) again(v *againView) {
	if v == nil {
		return
	}
	s.put(`
<section>
  <h2>Judged again from the raw segments</h2>
  <p>{}</p>
  `, v.Sentence)
	if len(v.Rows) > 0 {
		s.put(`<div class="scroll"><table><tr><th>comparison</th><th class="r">pairs</th>` +
			`<th class="r">effect</th><th>interval</th><th>was</th><th>is now</th><th>why</th></tr>
  `)
		for _, r := range v.Rows {
			if r.Differs {
				s.put(`<tr class="differs">`)
			} else {
				s.put(`<tr>`)
			}
			s.put(`<td>{}</td><td class="r">{}</td><td class="r">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>
  `, r.What, r.Pairs, r.Effect, r.Interval, r.Was, r.Now, r.Why)
		}
		s.put(`</table></div>`)
	}
	s.put(`
</section>
`)
}

// changes writes what stays on the hosts, and the commands that undo it.
func (s *sheet) changes(v view) {
	s.put(`<section>
  <h2>What stays on the hosts, and how to undo it</h2>
  `)
	if len(v.Changes) == 0 {
		s.put(`<p class="soft">Nothing: every setting has its previous value.</p>`)
	} else {
		state := "State: " + v.State + ". The changes last until the next boot, unless they are persisted."
		if v.Uncertain {
			state = "The host was asked to commit these, and the run ended before the answer came."
		}
		s.put(`<p class="soft">{} On each host:</p>
  <div class="scroll"><table><tr><th>id</th><th>side</th><th>knob</th><th>from</th><th>to</th><th>state</th></tr>
  `, state)
		for _, c := range v.Changes {
			s.put(`<tr><td class="mono">{}</td><td>{}</td><td class="mono">{}</td>`+
				`<td class="mono">{}</td><td class="mono">{}</td><td>{}</td></tr>
  `, c.ID, c.Side, c.Knob, c.From, c.To, c.State)
		}
		s.put(`</table></div>
  <pre>linerate undo --all      # restore every value and read it back
linerate undo ID         # undo one change
linerate persist         # keep the changes across reboots</pre>
  `)
	}
	s.put(`
</section>`)
}

// list writes a section of sentences.
func (s *sheet) list(title string, sentences []string) {
	if len(sentences) == 0 {
		return
	}
	s.put(`<section><h2>{}</h2>`, title)
	s.items(sentences)
	s.put(`</section>`)
}

// items writes a list of sentences.
func (s *sheet) items(sentences []string) {
	s.put(`<ul>`)
	for _, text := range sentences {
		s.put(`<li>{}</li>`, text)
	}
	s.put(`</ul>`)
}

// foot writes the last line, with the name of the stored run.
func (s *sheet) foot(v view) {
	s.put(`
<footer>linerate {}`, v.Version)
	if v.Run != "" {
		s.put(` · run {}: <code>linerate report {}</code>`, v.Run, v.Run)
	}
	s.put(` · one page, no network needed</footer>
</main>
</body>
</html>
`)
}
