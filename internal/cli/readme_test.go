package cli

import (
	"bytes"
	"os"
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
