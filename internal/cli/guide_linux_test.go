package cli_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/lab/link"
	"github.com/linerate/linerate/internal/lab/scenario"
	"github.com/linerate/linerate/internal/wire"
)

// refusedToJudge is the exit status of a result that is not complete, among others of a comparison
// that has too few samples.
const refusedToJudge = 3

var consoleBlock = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

// commandsOf returns the lines that a page asks the reader to type.
func commandsOf(page []byte) []string {
	var commands []string
	for _, block := range consoleBlock.FindAllSubmatch(page, -1) {
		for line := range strings.Lines(string(block[1])) {
			if c, ok := strings.CutPrefix(strings.TrimSpace(line), "$ "); ok {
				commands = append(commands, c)
			}
		}
	}
	return commands
}

// TestGuide types every command of every guide page and recipe, page by page, into the near host of
// a fresh world, so that the pages cannot go stale. Each must succeed. The shell script that a page
// exports and runs needs ethtool.
func TestGuide(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Peers)
	var pages []string
	for _, dir := range []string{"guide", "recipes"} {
		found, err := filepath.Glob("../../docs/" + dir + "/*.md")
		if err != nil || len(found) < 5 {
			t.Fatalf("pages of %s: %v, %v", dir, found, err)
		}
		pages = append(pages, found...)
	}
	all := 0
	for _, name := range pages {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		commands := commandsOf(page)
		if strings.HasSuffix(name, "/scripts.md") {
			commands = append(commands, workflow(t)...)
		}
		all += len(commands)
		if len(commands) == 0 {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".md"), func(t *testing.T) {
			t.Parallel()
			const tries = 10
			for range tries {
				if typeAll(t, commands) {
					return
				}
			}
			t.Errorf("the program refused to judge its measurements %d times", tries)
		})
	}
	if all < 15 {
		t.Errorf("only %d commands in the guide: are the blocks still marked as console?", all)
	}
}

// workflow returns what the workflow beside the pages runs.
func workflow(t *testing.T) (commands []string) {
	t.Helper()
	file, err := os.ReadFile("../../docs/guide/path.yml")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(file)) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "run: "); ok {
			commands = append(commands, command)
		}
	}
	if len(commands) == 0 {
		t.Fatal("the workflow runs nothing")
	}
	return commands
}

// typeAll types the commands of a page, and reports whether they could be judged: a command that
// ends with 3 refuses to judge its own measurement, as on a host that stood still, and then the
// page begins anew.
func typeAll(t *testing.T, commands []string) bool {
	t.Helper()
	world := scenario.World{Topology: scenario.Pair,
		Link: &scenario.Link{ToFar: link.Params{RateBitsPerSec: 300e6, DelaySeconds: 0.002}}}
	running, err := lab.Up(t.Context(), world)
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	key, state := wire.NewKey().String(), t.TempDir()
	stop, err := running.Serve(t.Context(), key, filepath.Join(state, "far"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	// The shell splits each line as the reader's shell does; the test binary, under the name
	// linerate, is the program.
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "linerate")); err != nil {
		t.Fatal(err)
	}
	here := t.TempDir() // where the commands of a page leave their files
	guide, err := filepath.Abs("../../docs/guide")
	if err == nil {
		err = os.Mkdir(filepath.Join(here, "docs"), 0o755)
	}
	if err == nil {
		err = os.Symlink(guide, filepath.Join(here, "docs", "guide"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		c := running.Near().Exec(t.Context(), "sh", "-ec", command)
		c.Dir = here
		var stdout, stderr bytes.Buffer
		c.Env = []string{"LINERATE_KEY=" + key, "LINERATE_STATE=" + filepath.Join(state, "near"),
			"PATH=" + bin + ":" + os.Getenv("PATH"),
			// A busy machine must not decide whether a page is right.
			"DURATION=3", "INTERVAL=0.1", "TOLERANCE=0.99"}
		c.Stdout, c.Stderr = &stdout, &stderr
		err := c.Run()
		if exit := (*lab.ExitError)(nil); errors.As(err, &exit) && exit.Code == refusedToJudge {
			t.Logf("$ %s\n%v\n%s%s", command, err, &stdout, &stderr)
			return false
		}
		if err != nil {
			t.Fatalf("$ %s\n%v\n%s%s", command, err, &stdout, &stderr)
		}
		if stdout.Len() == 0 {
			t.Errorf("$ %s\nprinted nothing", command)
		}
	}
	return true
}
