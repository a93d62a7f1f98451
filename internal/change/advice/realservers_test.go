package advice

import (
	"os"
	"path"
	"strings"
	"testing"
)

// TestRealNameServers: of the options in real named.conf and unbound.conf files, at least 95 of 100
// get the verdict that a person gave them before this program did. docs/evidence/advice.md has the
// method.
func TestRealNameServers(t *testing.T) {
	data, err := os.ReadFile("testdata/nameservers.tsv")
	if err != nil {
		t.Fatal(err)
	}
	files, all, right := map[string]bool{}, 0, 0
	for row := range strings.Lines(string(data)) {
		if strings.HasPrefix(row, "#") {
			continue
		}
		f := strings.Split(strings.TrimSpace(row), "\t")
		if len(f) != 4 {
			t.Fatalf("not a row of four fields: %q", row)
		}
		files[f[0]] = true
		if f[1] == "-" {
			continue
		}
		all++
		text := "options {\n\t" + f[1] + "\n};\n"
		if path.Base(f[0]) == "unbound.conf" {
			text = "server:\n\t" + f[1] + "\n"
		}
		parsed, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		judged := (Target{}).Judge(parsed)
		switch {
		case len(judged) != 1:
			t.Logf("%s: %q is not read", f[0], f[1])
		case string(judged[0].Verdict) == f[2]:
			right++
		default:
			t.Logf("%s: %q is %s, by hand %s (%s): %s", f[0], f[1], judged[0].Verdict, f[2], f[3], judged[0].Why)
		}
	}
	t.Logf("%d files, %d options, %d right", len(files), all, right)
	if len(files) < 20 || 100*right < 95*all {
		t.Errorf("%d of %d options in %d files are right", right, all, len(files))
	}
}
