package report_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/advice"
	"github.com/linerate/linerate/internal/report"
)

// sampleAdvice is judged advice of every verdict, with a line that would like to rule the terminal.
func sampleAdvice() *report.AdviceDocument {
	return report.NewCheckAdvice(envelope(), "old.conf", 9, "", map[string]string{"linux": "6.18.44"}, []advice.Judgement{
		{Setting: advice.Setting{Line: 1, Text: "net.ipv4.tcp_sack=1", OS: advice.Linux, Knob: "sysctl:net.ipv4.tcp_sack", Value: "1"}, For: advice.Linux,
			Verdict: advice.NowDefault, Why: "That is the default, since Linux 2.2.", Today: "leave it out", Source: "tcp(7)", Default: "1"},
		{Setting: advice.Setting{Line: 2, Text: "net.ipv4.tcp_rmem = 4096 87380 4194304", OS: advice.Linux, Knob: "sysctl:net.ipv4.tcp_rmem", Value: "4096 87380 4194304"},
			For: advice.Linux, Verdict: advice.Harmful, Why: "Lowers the limit up to which the receive window may grow by itself: 4194304, where the default since Linux 6.16 is 33554432.",
			Since: "6.16", Today: "leave it out", Source: "commit 572be9bf9d0d", Default: "4096 131072 33554432", Current: "4096 131072 33554432"},
		{Setting: advice.Setting{Line: 4, Text: "\x1b[2Jx = y"}, For: advice.Linux, Verdict: advice.Unknown, Why: "Looks like a setting, in no form that is known here."},
		{Setting: advice.Setting{Line: 5, Text: "options DEVICE_POLLING", OS: advice.FreeBSD, Knob: "option:DEVICE_POLLING"}, For: advice.FreeBSD,
			Verdict: advice.Ignored, Why: "Builds, and cannot be used.", Since: "12.0", Today: "dev.em.N.itr", Source: "polling(4)"},
		{Setting: advice.Setting{Line: 6, Text: "ethtool -G eth0 rx 4096", OS: advice.Linux, Knob: "ethtool:eth0/ring.rx", Value: "4096"}, For: advice.Linux,
			Verdict: advice.StillRight, Why: "Helps while the card's counter of missed frames rises.", Source: "ethtool(8)"},
		{Setting: advice.Setting{Line: 9, Text: "net.ipv4.tcp_tw_recycle=1", OS: advice.Linux, Knob: "sysctl:net.ipv4.tcp_tw_recycle", Value: "1"}, For: advice.Linux,
			Verdict: advice.Removed, Why: "Gone.", Since: "4.12", Today: "leave it out", Source: "commit 4396e46187ca"},
	})
}

// TestCheckAdvice holds the document to its schema and to its golden files, and the text to what all text must be.
func TestCheckAdvice(t *testing.T) {
	nothing := report.NewCheckAdvice(envelope(), "empty.conf", 1, advice.Windows, nil, nil)
	for name, doc := range map[string]*report.AdviceDocument{"check-advice": sampleAdvice(), "check-advice-empty": nothing} {
		var line, indented, plain, coloured bytes.Buffer
		if err := errors.Join(report.Encode(&line, doc), report.EncodeIndent(&indented, doc),
			report.AdviceText(&plain, doc, report.Style{}), report.AdviceText(&coloured, doc, report.Style{Colour: true})); err != nil {
			t.Fatal(err)
		}
		if err := report.Validate(line.Bytes()); err != nil {
			t.Error(err)
		}
		golden(t, "testdata/"+name+".json", indented.Bytes())
		golden(t, "testdata/"+name+".txt", plain.Bytes())
		checkText(t, plain.String())
		if got := escapes.ReplaceAllString(coloured.String(), ""); got != plain.String() {
			t.Errorf("%s: colour changes more than colour", name)
		}
		for n := range strings.Count(plain.String(), "\n") {
			if err := report.AdviceText(&brokenWriter{left: n}, doc, report.Style{}); !errors.Is(err, errBroken) {
				t.Errorf("%s: a writer that breaks after %d lines gives %v", name, n, err)
			}
		}
	}
}

// TestUnjudgedTogether says a reason once for all that it is the reason of.
func TestUnjudgedTogether(t *testing.T) {
	var settings []advice.Judgement
	for i, why := range []string{"No setting of the network.", "Nothing is known here.", "No setting of the network."} {
		settings = append(settings, advice.Judgement{Setting: advice.Setting{Line: i + 1, Text: "x"}, For: advice.Linux, Verdict: advice.Unknown, Why: why})
	}
	var b bytes.Buffer
	if err := report.AdviceText(&b, report.NewCheckAdvice(envelope(), "x", 3, "", nil, settings), report.Style{}); err != nil {
		t.Fatal(err)
	}
	want := "  line 1  x\n  line 3  x\n      No setting of the network.\n  line 2  x\n      Nothing is known here.\n"
	if !strings.HasSuffix(b.String(), want) {
		t.Errorf("got\n%s\nwant at its end\n%s", b.String(), want)
	}
}
