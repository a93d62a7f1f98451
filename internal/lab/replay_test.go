package lab

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/lab/scenario"
)

// goodTune is the document of a tune that meets the replay below.
const goodTune = `{"state":"committed","reason":"confirmed",
"final":{"pairs":6,"effect_ratio":4,"effect_low_ratio":3.7,"effect_high_ratio":4.2,"confidence_ratio":0.95},
"kept":[{"knob":"a:x","side":"near"},{"knob":"a:x","side":"far"}],
"trials":[{"knob":"a:x","side":"near","effect_ratio":1.1,"verdict":"reverted-unproven","reason":"not proven"},
{"knob":"a:x","side":"near","effect_ratio":4,"verdict":"kept","together":true},
{"knob":"a:x","side":"far","effect_ratio":4,"verdict":"kept","together":true},
{"knob":"b:y","side":"far","effect_ratio":0.5,"verdict":"reverted-worse","reason":"worse: -50 %"}],
"ablation":[{"knob":"a:x","side":"near","needed":true},{"knob":"a:x","side":"far","needed":true}]}`

func TestReplayMisses(t *testing.T) {
	want := scenario.Replay{Ratio: 3.66, Kept: []string{"near a:x", "far a:x"}, Alone: []string{"near a:x", "far a:x"},
		Worse: []string{"far b:y"}}
	for name, c := range map[string]struct{ old, new, reason string }{
		"good": {"", "", ""},
		"too little": {`"effect_low_ratio":3.7`, `"effect_low_ratio":3.6`,
			"at least ×3.6; the lower bound must reach ×3.66"},
		"no interval": {`"effect_low_ratio":3.7,`, ``, "the lower bound must reach"},
		"taken back":  {`"state":"committed"`, `"state":"undone"`, "nothing was confirmed"},
		"no end":      {`"final"`, `"other"`, "nothing was confirmed"},
		"one end":     {`,{"knob":"a:x","side":"far"}],`, `],`, "far a:x was not kept"},
		"needless": {`"side":"far","needed":true`, `"side":"far","needed":false`,
			"far a:x is not needed beside the others"},
		"alone": {`"effect_ratio":1.1`, `"effect_ratio":3.9`, "near a:x alone gains ×3.9"},
		"not worse": {`"verdict":"reverted-worse"`, `"verdict":"reverted-unproven"`,
			"far b:y was not proven worse"},
		"not said":      {`"worse: -50 %"`, `"-50 %"`, "far b:y was not proven worse"},
		"never tried":   {`"b:y"`, `"b:z"`, "far b:y was not proven worse"},
		"the other end": {`{"knob":"b:y","side":"far"`, `{"knob":"b:y","side":"near"`, "far b:y was not proven worse"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(goodTune, c.old, c.new, 1)
			if c.old != "" && text == goodTune {
				t.Fatal("nothing was changed")
			}
			r := Result{Scenario: scenario.Scenario{Replay: &want}, Tune: json.RawMessage(text),
				Proof: Proof{Compared: 1}}
			r.judgeReplay()
			if r.Pass != (c.reason == "") || !strings.Contains(r.Reason, c.reason) {
				t.Errorf("pass %v: %q", r.Pass, r.Reason)
			}
		})
	}
	r := Result{Scenario: scenario.Scenario{Replay: &want}, Tune: json.RawMessage(goodTune),
		Proof: Proof{Compared: 1, Left: []Value{{Host: "far", Knob: "a:x"}}}}
	if r.judgeReplay(); r.Pass || r.Reason != "these settings differ after undo: far a:x" {
		t.Errorf("%+v", r)
	}
	if len(r.Tried) != 4 || r.Gain == nil || r.Gain.Low != 3.7 {
		t.Errorf("%+v %+v", r.Tried, r.Gain)
	}
}

// A trial after a kept change is measured on top of it, so its gain is not the gain of the change
// alone.
func TestReplayAloneBesideAnother(t *testing.T) {
	const later = `{"state":"committed","final":{"effect_ratio":8,"effect_low_ratio":5},
"kept":[{"knob":"a:x","side":"near"},{"knob":"a:x","side":"far"}],
"trials":[{"knob":"a:x","side":"near","effect_ratio":1.2,"verdict":"kept"},
{"knob":"a:x","side":"far","effect_ratio":6.5,"verdict":"kept"}],
"ablation":[{"knob":"a:x","side":"near","effect_ratio":7.8,"needed":true},
{"knob":"a:x","side":"far","effect_ratio":6.5,"needed":true}]}`
	want := scenario.Replay{Ratio: 3.66, Kept: []string{"near a:x", "far a:x"}, Alone: []string{"near a:x", "far a:x"}}
	for name, c := range map[string]struct{ old, new, reason string }{
		"both needed":  {"", "", ""},
		"one did all":  {`"effect_ratio":7.8`, `"effect_ratio":1.1`, "far a:x alone gains ×7.27"},
		"the first by": {`"effect_ratio":1.2`, `"effect_ratio":4.1`, "near a:x alone gains ×4.1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Result{Scenario: scenario.Scenario{Replay: &want},
				Tune: json.RawMessage(strings.Replace(later, c.old, c.new, 1)), Proof: Proof{Compared: 1}}
			r.judgeReplay()
			if r.Pass != (c.reason == "") || r.Reason != c.reason {
				t.Errorf("pass %v: %q", r.Pass, r.Reason)
			}
		})
	}
}
