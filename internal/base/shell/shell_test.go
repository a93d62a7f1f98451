package shell_test

import (
	"testing"

	"github.com/linerate/linerate/internal/base/shell"
)

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"serve":         "serve",
		"--stdio":       "--stdio",
		"sysctl:a.b=1":  "sysctl:a.b=1",
		"/opt/my tools": "'/opt/my tools'",
		"it's":          `'it'\''s'`,
		"$(reboot)":     "'$(reboot)'",
		"":              "''",
		"a;b":           "'a;b'",
		"é":             "'é'",
	} {
		if got := shell.Quote(word); got != want {
			t.Errorf("Quote(%q) = %s, want %s", word, got, want)
		}
	}
	got, want := shell.Join([]string{"set", "tcp_wmem=4096 16384 4194304"}), "set 'tcp_wmem=4096 16384 4194304'"
	if got != want {
		t.Errorf("Join: %s, want %s", got, want)
	}
}
