package daemon_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

// TestGuide runs the commands of docs/guide/hub.md beside a hub: they must succeed, print
// something, and get what they request.
func TestGuide(t *testing.T) {
	testenv.Need(t, testenv.Long, testenv.Peers) // curl
	page, err := os.ReadFile("../../../docs/guide/hub.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, block := range regexp.MustCompile("(?ms)^```console-hub\n(.*?)^```$").FindAllSubmatch(page, -1) {
		for line := range strings.Lines(string(block[1])) {
			if c, ok := strings.CutPrefix(strings.TrimSpace(line), "$ "); ok {
				commands = append(commands, c)
			}
		}
	}
	if len(commands) < 6 {
		t.Fatalf("%d commands in the page", len(commands))
	}
	h := startHub(t, t.TempDir())
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "linerate-hub")); err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		typed := strings.ReplaceAll(command, "http://127.0.0.1:7071", h.url)
		c := exec.CommandContext(t.Context(), "sh", "-ec", typed)
		c.Env = append(os.Environ(), asHub+"=1", "PATH="+bin+":"+os.Getenv("PATH"))
		var stdout, stderr bytes.Buffer
		c.Stdout, c.Stderr = &stdout, &stderr
		if err := c.Run(); err != nil || stdout.Len() == 0 {
			t.Errorf("$ %s\n%v\n%s%s", command, err, &stdout, &stderr)
		}
		if strings.Contains(command, "/api/v1/") && !strings.HasPrefix(stdout.String(), `{"status":"success"`) {
			t.Errorf("$ %s\nis refused: %s", command, &stdout)
		}
	}
	_ = h.cmd.Process.Kill()
	h.wait(t)
}
