package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/cli/clitest"
)

// readmeAdvice is the advice that the README judges: a removed setting, one that lowers a limit
// which has grown since, and one that is still right.
const readmeAdvice = "net.ipv4.tcp_tw_recycle = 1\n" +
	"net.ipv4.tcp_rmem = 4096 87380 4194304\n" +
	"net.core.rmem_max = 16777216\n"

// TestGeneratedReadme compares the example in the README with the real output of its command.
func TestGeneratedReadme(t *testing.T) {
	const path, from, to = "../../README.md", "<!-- example: check-advice -->\n", "<!-- /example -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), from)
	_, after, ended := strings.Cut(rest, to)
	if !ok || !ended {
		t.Fatalf("%s has no place for the example: want the lines %q and %q", path, from, to)
	}
	var out, errs bytes.Buffer
	args := []string{"linerate", "check-advice", "--release", "6.18", "-"}
	if status := Main(args, strings.NewReader(readmeAdvice), &out, &errs); status != 0 {
		t.Fatalf("status %d: %s", status, &errs)
	}
	example := "```text\n$ cat old-sysctl.conf\n" + readmeAdvice +
		"$ linerate check-advice --release 6.18 - < old-sysctl.conf\n" + out.String() + "```\n"
	clitest.Generated(t, path, []byte(before+from+example+to+after), *update)
}

// TestOnePlaceOfThePrograms compares every path of an installed program, in units, guides and
// examples, with the directory into which the README installs it.
func TestOnePlaceOfThePrograms(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	install := regexp.MustCompile("The units in `dist` expect the programs in `(\\S+)`").FindSubmatch(readme)
	if install == nil {
		t.Fatal("README.md does not say where to install linerate")
	}
	var files []string
	for _, pattern := range []string{"../../*.md", "../../docs/*/*.md", "../../dist/*/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	place := regexp.MustCompile(`(/\S*s?bin)/linerate(-hub)?\b`)
	seen := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range place.FindAllStringSubmatch(string(text), -1) {
			if seen++; m[1] != string(install[1]) {
				t.Errorf("%s has %s, but the README installs into %s", name, m[0], install[1])
			}
		}
	}
	if seen < 3 {
		t.Errorf("only %d paths of programs found", seen)
	}
}
