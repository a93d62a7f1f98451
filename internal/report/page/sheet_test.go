package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPut checks that a value cannot leave its place.
func TestPut(t *testing.T) {
	const hostile = `"><script>'{}&+`
	for _, c := range []struct {
		name   string
		layout markup
		value  string
		want   string
	}{
		{"text", "<p>{}</p>", hostile, "<p>&#34;&gt;&lt;script&gt;&#39;{}&amp;&#43;</p>"},
		{"text alone", "{} · ", "a<b", "a&lt;b · "},
		{"attribute", `<p class="x {}">`, hostile, `<p class="x &#34;&gt;&lt;script&gt;&#39;{}&amp;&#43;">`},
		{"attribute after text with quotes", `a "b" <p aria-label="{}">`, `"`, `a "b" <p aria-label="&#34;">`},
		{"text after an attribute", `<p class="x">{}`, `"`, `<p class="x">&#34;`},
		{"share of the width", `<rect x="{}"/>`, "12.5%", `<rect x="12.5%"/>`},
		{"height", `<rect y="{}"/>`, "-3.0", `<rect y="-3.0"/>`},
		{"no number", `<rect x="0" y="{}"/>`, "NaN", `<rect x="0" y="0"/>`},
		{"hostile number", `<rect width="{}"/>`, hostile, `<rect width="0"/>`},
		{"empty number", `<rect height="{}"/>`, "", `<rect height="0"/>`},
		{"path", `<path d="{}"/>`, diamond, `<path d="` + diamond + `"/>`},
		{"hostile path", `<path d="{}"/>`, hostile, `<path d=""/>`},
	} {
		var s sheet
		s.put(c.layout, c.value)
		if got := s.b.String(); got != c.want || s.err != nil {
			t.Errorf("%s: %s, %v, want %s", c.name, got, s.err, c.want)
		}
	}
}

// TestPutRefuses checks that a layout with a value where no escape is safe is an error, and so is
// everything after it.
func TestPutRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		layout markup
		values []string
		want   string
	}{
		{"without quotes", `<p class={}>`, []string{"x"}, "no value can stand"},
		{"single quotes", `<p class='{}'>`, []string{"x"}, "no value can stand"},
		{"name of an attribute", `<p {}="x">`, []string{"x"}, "no value can stand"},
		{"name of a tag", `<{}>`, []string{"x"}, "no value can stand"},
		{"nameless quotes", `<p "{}">`, []string{"x"}, "no value can stand"},
		{"handler", `<p onclick="{}">`, []string{"x"}, "no value can stand"},
		{"style", `<p style="{}">`, []string{"x"}, "no value can stand"},
		{"address", `<a href="{}">`, []string{"x"}, "no value can stand"},
		{"style sheet", `<style>{}</style>`, []string{"x"}, "values and code"},
		{"script", `<script>{}</script>`, []string{"x"}, "values and code"},
		{"value too few", `<p>{}{}</p>`, []string{"x"}, "2 places for 1 values"},
		{"value too many", `<p></p>`, []string{"x"}, "0 places for 1 values"},
		{"open tag", `<p class="x"`, nil, "ends within a tag"},
		{"open quotes", `<p class="x>`, nil, "ends within a tag"},
	} {
		var s sheet
		s.put(c.layout, c.values...)
		s.put("<p>later</p>")
		if s.err == nil || !strings.Contains(s.err.Error(), c.want) || strings.Contains(s.b.String(), "later") {
			t.Errorf("%s: %q, %v, want an error with %q", c.name, s.b.String(), s.err, c.want)
		}
	}
}

// TestOnlyConstantsAreMarkup checks that no code converts a value to markup, the only way around
// the escapes.
func TestOnlyConstantsAreMarkup(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "_test.go") &&
			(strings.Contains(string(b), "markup(") || strings.Count(string(b), ".b.Write") > 0 && file != "sheet.go") {
			t.Errorf("%s makes markup of a value, or writes past put", file)
		}
	}
}
