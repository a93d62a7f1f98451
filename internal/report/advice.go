package report

import "github.com/linerate/linerate/internal/change/advice"

// SchemaCheckAdvice is the document of judged advice.
const SchemaCheckAdvice = "linerate.check-advice/1"

// AdviceDocument is linerate.check-advice/1: whether each setting in a text is still right, in the
// order of the text.
type AdviceDocument struct {
	Envelope
	File string `json:"file"` // "-" is standard input
	// the system to judge for; absent: each setting is judged for its own system
	OS string `json:"os,omitempty"`
	// by system, where one was given or known; otherwise the newest
	Releases map[string]string `json:"releases,omitempty"`
	Lines    int               `json:"lines_total"`
	Verdicts AdviceCounts      `json:"verdicts"`
	Settings []AdviceSetting   `json:"settings"`
	// lines that name or look like a setting, in no form that is read; their settings have no knob
	NotUnderstood      int   `json:"not_understood_total"`
	NotUnderstoodLines []int `json:"not_understood_lines"` // counted from 1
}

// AdviceCounts counts the settings by verdict.
type AdviceCounts struct {
	Harmful    int `json:"harmful_total"`
	Removed    int `json:"removed_total"`
	Ignored    int `json:"ignored_total"`
	NowDefault int `json:"now_default_total"`
	StillRight int `json:"still_right_total"`
	Unknown    int `json:"unknown_total"`
}

// AdviceSetting is one judged setting. Knob and value are absent for a line that was not
// understood.
type AdviceSetting struct {
	Line    int            `json:"line"` // counted from 1
	Text    string         `json:"text"` // the line as written
	Knob    string         `json:"knob,omitempty"`
	Value   string         `json:"value,omitempty"`
	OS      string         `json:"os"` // the system that it was judged for
	Verdict advice.Verdict `json:"verdict"`
	Why     string         `json:"why"`
	Since   string         `json:"since,omitempty"`   // first release for which the verdict holds
	Today   string         `json:"today,omitempty"`   // what has the wanted effect now
	Source  string         `json:"source,omitempty"`  // of this knowledge
	Default string         `json:"default,omitempty"` // default of the target
	Current string         `json:"current,omitempty"` // present value on this host; absent: not requested
}

// NewCheckAdvice makes a document of judged settings, in the order of the text.
func NewCheckAdvice(e Envelope, file string, lines int, os advice.OS, releases map[string]string,
	judged []advice.Judgement) *AdviceDocument {
	d := &AdviceDocument{Envelope: e.Of(SchemaCheckAdvice), File: file, OS: string(os), Releases: releases,
		Lines: lines}
	for _, j := range judged {
		if j.Knob == "" {
			d.NotUnderstood++
			d.NotUnderstoodLines = append(d.NotUnderstoodLines, j.Line)
		}
		d.Settings = append(d.Settings, AdviceSetting{
			Line: j.Line, Text: j.Text, Knob: j.Knob, Value: j.Value, OS: string(j.For), Verdict: j.Verdict, Why: j.Why,
			Since: j.Since, Today: j.Today, Source: j.Source, Default: j.Default, Current: string(j.Current),
		})
		switch j.Verdict {
		case advice.Harmful:
			d.Verdicts.Harmful++
		case advice.Removed:
			d.Verdicts.Removed++
		case advice.Ignored:
			d.Verdicts.Ignored++
		case advice.NowDefault:
			d.Verdicts.NowDefault++
		case advice.StillRight:
			d.Verdicts.StillRight++
		default:
			d.Verdicts.Unknown++
		}
	}
	FillSlices(d)
	return d
}
