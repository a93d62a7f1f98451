package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// mostOfKeyFile bounds what is read in search of a key, which has 34 characters with its dashes.
const mostOfKeyFile = 4096

// keyFlags are the ways to give a key on the command line.
//
// Every user of a host can read the arguments of every process (proc_pid_cmdline(5)), but only its
// owner the environment, a file of mode 0600 and standard input. So the key itself as an argument
// is for hosts without other users.
type keyFlags struct{ key, file string }

// add registers the flags; what describes the key.
func (f *keyFlags) add(flags *pflag.FlagSet, what string) {
	flags.StringVar(&f.key, "key", "", what+"; - reads it from standard input. Other users of this host can read a key "+
		"that is an argument: LINERATE_KEY, --key-file and --key - hide it")
	flags.StringVar(&f.file, "key-file", "", "read the key from this file, whose mode should be 0600")
}

// key returns the key that the flags or the environment give, or "". A flag wins.
func (a *app) key(f keyFlags) (string, error) {
	switch {
	case f.key != "" && f.file != "":
		return "", usagef("--key and --key-file: give one of them")
	case f.file != "":
		return a.keyOfFile(f.file)
	case f.key == "-":
		return a.keyOfInput()
	case f.key != "":
		return f.key, nil
	}
	return strings.TrimSpace(a.env("LINERATE_KEY")), nil
}

// keyOfFile reads a key, and warns when other users may do so too.
func (a *app) keyOfFile(name string) (string, error) {
	in, f, err := a.openFile(name)
	if err != nil {
		return "", flagError{fmt.Errorf("read key: %w", err), "--key-file names a file that holds only the key"}
	}
	defer in.Close() // opened for reading
	info, err := f.Stat()
	if err == nil && runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o044 != 0 {
		a.warn("other users may read the key in %s: chmod 600 hides it", name)
	}
	return firstLine(in, "--key-file "+name)
}

// keyOfInput reads a key from standard input; a terminal does not show it.
func (a *app) keyOfInput() (string, error) {
	f, ok := a.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return firstLine(a.stdin(), "--key -")
	}
	fmt.Fprint(a.err, "key: ")
	shown, _ := term.GetState(int(f.Fd()))
	text, err := awaited(a.ended, func() ([]byte, error) { return term.ReadPassword(int(f.Fd())) })
	if err != nil && shown != nil {
		_ = term.Restore(int(f.Fd()), shown) // the shell needs what is typed to show
	}
	fmt.Fprintln(a.err)
	if err != nil {
		return "", fmt.Errorf("read key: %w", err)
	}
	return firstLine(strings.NewReader(string(text)), "--key -")
}

// firstLine returns the first line of a source that is not empty.
func firstLine(r io.Reader, source string) (string, error) {
	lines := bufio.NewScanner(io.LimitReader(r, mostOfKeyFile))
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" {
			return line, nil
		}
	}
	err := lines.Err()
	if err == nil {
		err = errors.New("it is empty")
	}
	return "", usagef("%s: read key: %w", source, err)
}

// warn prints one sentence on standard error that the exit status does not show. With --json it
// waits for the end: an error is the only object on standard error, and has the sentences in it.
func (a *app) warn(format string, args ...any) {
	a.notices = append(a.notices, fmt.Sprintf(format, args...))
	if !a.json {
		a.showNotices()
	}
}

// showNotices prints the sentences that are kept.
func (a *app) showNotices() {
	for _, line := range a.notices {
		fmt.Fprintln(a.err, "linerate:", line)
	}
	a.notices = nil
}
