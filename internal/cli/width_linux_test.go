package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// TestTextFitsTheTerminal lists the scenarios on terminals of several widths: each line fits. Into
// a pipe each scenario is one line.
func TestTextFitsTheTerminal(t *testing.T) {
	list := func(out io.Writer) {
		if status := newApp(strings.NewReader(""), out, io.Discard).run([]string{"lab", "list"}); status != exitOK {
			t.Errorf("status %d", status)
		}
	}
	var piped bytes.Buffer
	list(&piped)
	for _, width := range []int{132, 80, 60} {
		master, slave := terminalOf(t, width)
		shown := make(chan string)
		go func() {
			text, _ := io.ReadAll(master) // ends with an error when the terminal is closed
			shown <- string(text)
		}()
		list(slave)
		slave.Close()
		text := strings.ReplaceAll(<-shown, "\r\n", "\n")
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("a line of %d columns on a terminal of %d: %s", n, width, line)
			}
		}
		have := strings.Fields(text)
		for _, word := range strings.Fields(piped.String()) {
			if !slices.Contains(have, word) {
				t.Errorf("the terminal of %d columns lacks %q:\n%s", width, word, text)
			}
		}
	}
}

// TestTopFitsTheTerminal prints the table of this host and one interface on terminals of several
// widths: each line fits.
func TestTopFitsTheTerminal(t *testing.T) {
	for i, width := range []int{200, 80, 60, 60, 40, 40} {
		master, slave := terminalOf(t, width)
		shown := make(chan string)
		go func() {
			text, _ := io.ReadAll(master) // ends with an error when the terminal is closed
			shown <- string(text)
		}()
		args := []string{"top", "--once", "--interval", "100ms"}
		if i%2 == 1 {
			args = append(args, "--interface", "lo")
		}
		if status := newApp(strings.NewReader(""), slave, io.Discard).run(args); status != exitOK {
			t.Errorf("status %d", status)
		}
		slave.Close()
		text := strings.ReplaceAll(<-shown, "\r\n", "\n")
		if !strings.Contains(text, "linerate top") {
			t.Errorf("no table on a terminal of %d columns:\n%s", width, text)
		}
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("a line of %d columns on a terminal of %d: %s", n, width, line)
			}
		}
	}
}

// terminalOf returns both ends of a new terminal without colours.
func terminalOf(t *testing.T, width int) (master, slave *os.File) {
	t.Helper()
	t.Setenv("NO_COLOR", "1")
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(width)})
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}
