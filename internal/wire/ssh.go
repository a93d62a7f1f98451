package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// SSHTarget is a far end reached over the user's own ssh.
type SSHTarget struct {
	User string // empty: as ssh's configuration says
	Host string // name, alias of the user's ssh configuration, or address (IPv6 without brackets)
	Port int    // 0: as ssh's configuration says
}

// ParseSSHTarget reads ssh://[USER@]HOST[:PORT]. It refuses text that ssh could take for an option,
// and text that cannot be a host.
func ParseSSHTarget(text string) (SSHTarget, error) {
	u, err := url.Parse(text)
	if err != nil {
		return SSHTarget{}, fmt.Errorf("parse target %q: %w", text, errors.Unwrap(err))
	}
	bad := func(why string) (SSHTarget, error) {
		return SSHTarget{}, fmt.Errorf("parse target %q: %s; the form is ssh://[USER@]HOST[:PORT]", text, why)
	}
	t := SSHTarget{Host: u.Hostname()}
	if u.User != nil {
		t.User = u.User.Username()
		if _, has := u.User.Password(); has {
			return bad("a password is not allowed here")
		}
	}
	switch {
	case u.Scheme != "ssh":
		return bad("not an ssh target")
	case t.Host == "":
		return bad("no host")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return bad("text follows the host")
	case !harmlessWord(t.Host) || u.User != nil && !harmlessWord(t.User):
		return bad("user and host must not begin with '-' or hold blanks, quotes or control characters")
	}
	if p := u.Port(); p != "" {
		t.Port, err = strconv.Atoi(p)
		if err != nil || t.Port < 1 || t.Port > 65535 {
			return bad("the port must be a number from 1 to 65535")
		}
	}
	return t, nil
}

// String returns the target as the user writes it.
func (t SSHTarget) String() string {
	host := t.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if t.Port != 0 {
		host += ":" + strconv.Itoa(t.Port)
	}
	if t.User != "" {
		host = t.User + "@" + host
	}
	return "ssh://" + host
}

// harmlessWord reports whether ssh cannot take a word for an option, and its ProxyCommand cannot
// take it for shell syntax.
func harmlessWord(s string) bool {
	return s != "" && s[0] != '-' && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune("'\"`$\\;&<>|(){}!*?", r)
	})
}

// args gives the options of ssh for this target, up to and including the host.
func (t SSHTarget) args(options ...string) []string {
	args := append([]string{}, options...)
	if t.User != "" {
		args = append(args, "-l", t.User)
	}
	if t.Port != 0 {
		args = append(args, "-p", strconv.Itoa(t.Port))
	}
	return append(args, "--", t.Host)
}

// tryByHand is advice for a target that ssh does not reach.
func (t SSHTarget) tryByHand() string {
	words := t.args()
	return fmt.Sprintf("does `ssh %s` work by hand?", strings.Join(append(words[:len(words)-2], t.Host), " "))
}

const (
	greetingPrefix = "linerate/1 data-port="
	// maxGreetingBytes bounds what a far shell's start-up files may print before our greeting.
	maxGreetingBytes = 64 << 10
	maxStderrBytes   = 4 << 10
	// sshExitWait is how long ssh may take to end by itself after its standard input was closed;
	// the far end undoes trials in it.
	sshExitWait = 5 * time.Second
)

// WriteGreeting tells the near end of an ssh connection that its far end is there, and the TCP port
// of its data listener.
func WriteGreeting(w io.Writer, dataPort int) error {
	if _, err := fmt.Fprintf(w, "%s%d\n", greetingPrefix, dataPort); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	return nil
}

// parseGreeting reads one line of the far end.
func parseGreeting(line string) (dataPort int, ok bool) {
	digits, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), greetingPrefix)
	if !ok {
		return 0, false
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	return int(port), err == nil && port != 0
}

// DefaultSSHCommand is what SSH runs at the far end when no command is given.
var DefaultSSHCommand = []string{"linerate", "serve", "--stdio"}

// SSH starts command at target (ssh://[USER@]HOST[:PORT]) with the user's own ssh, configuration
// and agent, and gives the control channel over its standard input and output, and the address for
// data connections: the real host name as `ssh -G` tells it, with the port from the far end's
// greeting. ctx bounds the starting; ssh ends with the Conn. ssh asks for passwords at the terminal
// itself. Errors are *Error with what ssh wrote to standard error.
func SSH(ctx context.Context, target string, command []string) (*Conn, string, error) {
	t, err := ParseSSHTarget(target)
	if err != nil {
		return nil, "", err
	}
	if len(command) == 0 {
		command = DefaultSSHCommand
	}
	const op = "start linerate over"
	if _, err := exec.LookPath("ssh"); err != nil {
		return nil, "", &Error{Op: op, Peer: t.String(), Kind: ErrUnreachable, Err: err,
			Advice: "install the OpenSSH client on this host"}
	}
	config := t.config(ctx)
	options := []string{"-T"}
	if c := config["connecttimeout"]; c == "none" || c == "0" {
		// Without it a silent host holds us for the two minutes of the kernel's SYN retries; the
		// user's own setting wins.
		options = append(options, "-o", fmt.Sprintf("ConnectTimeout=%d", int(dialTimeout.Seconds())))
	}
	// ssh joins its arguments by blanks and the far shell splits them again, so each word is quoted
	// for that shell.
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = shellQuote(word)
	}
	s, err := startSSH(append(t.args(options...), strings.Join(words, " ")))
	if err != nil {
		return nil, "", &Error{Op: op, Peer: t.String(), Kind: ErrUnreachable, Err: err}
	}
	// ssh has no bound of its own for a far command that starts and says nothing; killing it ends
	// the read.
	stop := context.AfterFunc(ctx, s.kill)
	port, err := readGreeting(s.out)
	if !stop() {
		_ = s.Close()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, "", &Error{Op: op, Peer: t.String(), Kind: ErrUnreachable, Err: ctx.Err(),
				Advice: t.tryByHand()}
		}
		return nil, "", fmt.Errorf("%s %s: %w", op, t, ctx.Err())
	}
	if err != nil {
		return nil, "", s.explain(op, t, err)
	}
	host := t.Host
	if h := config["hostname"]; h != "" {
		host = h
	}
	// ssh's authentication is the channel's: no key, and nothing of ours listens for control there.
	return NewConn(s), net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// config asks ssh what its configuration makes of the target. An ssh that does not know -G (before
// 6.8) gives nothing, and the target is used as it was typed.
func (t SSHTarget) config(ctx context.Context) map[string]string {
	bounded, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	out, err := exec.CommandContext(bounded, "ssh", t.args("-G")...).Output()
	if err != nil {
		return nil
	}
	return parseSSHConfig(out)
}

// parseSSHConfig reads what `ssh -G` prints: one "keyword value" per line, the first one counts.
func parseSSHConfig(out []byte) map[string]string {
	config := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		keyword, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, has := config[keyword]; !has && keyword != "" {
			config[keyword] = value
		}
	}
	return config
}

// readGreeting skips what the far shell printed and reads the port.
func readGreeting(r *bufio.Reader) (int, error) {
	for seen := 0; seen < maxGreetingBytes; {
		// Never more than the reader's buffer: a far shell that prints one line without an end must
		// not fill our memory.
		line, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return 0, err
		}
		if port, ok := parseGreeting(string(line)); ok && err == nil {
			return port, nil
		}
		seen += len(line)
	}
	return 0, errors.New("the far end prints much, but no greeting of linerate")
}

// shellQuote makes one word of a POSIX shell; ssh hands the command to the far user's shell as one
// string.
func shellQuote(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,@%+", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// sshStream is the standard input and output of a running ssh.
type sshStream struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	pipe   *io.PipeReader
	out    *bufio.Reader // over pipe
	stderr *tail
	exited chan struct{} // closed when ssh was waited for; exit is set by then
	exit   error
	once   sync.Once
}

// startSSH runs ssh. The user's terminal stays its controlling one, for passwords.
func startSSH(args []string) (*sshStream, error) {
	s := &sshStream{cmd: sshProgram(args), stderr: &tail{}, exited: make(chan struct{})}
	s.cmd.Stderr = s.stderr
	// Should a grandchild (a ControlMaster in the background) keep standard error open, its end is
	// not waited for.
	s.cmd.WaitDelay = time.Second
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// A pipe of our own, because that of StdoutPipe is closed as soon as ssh ends, with what was
	// not yet read.
	out, outWriter := io.Pipe()
	s.cmd.Stdout = outWriter
	s.in, s.pipe, s.out = in, out, bufio.NewReaderSize(out, maxGreetingBytes)
	// Not exec.CommandContext: ctx is about the starting, and ssh lives as long as the Conn.
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.exit = s.cmd.Wait()
		close(s.exited)
		_ = outWriter.CloseWithError(s.endReason())
	}()
	return s, nil
}

// Read gives what the far end wrote, then io.EOF together with what ssh had to say.
func (s *sshStream) Read(b []byte) (int, error) { return s.out.Read(b) }

// Write gives the far end something to read.
func (s *sshStream) Write(b []byte) (int, error) { return s.in.Write(b) }

// Close lets the far end see the end of its input, and ends ssh if that does not.
func (s *sshStream) Close() error {
	s.once.Do(func() {
		_ = s.in.Close()   // fails only if it is closed already
		_ = s.pipe.Close() // never fails; what still comes has no reader
		select {
		case <-s.exited:
		case <-time.After(sshExitWait):
			s.kill()
		}
	})
	return nil
}

// kill ends ssh at once.
func (s *sshStream) kill() { _ = s.cmd.Process.Kill() } // fails only if it has ended already

// endReason gives the end of ssh as a reader meets it: io.EOF with what ssh said, if it said
// something.
func (s *sshStream) endReason() error {
	if text := s.stderr.last(); text != "" {
		return fmt.Errorf("%w: ssh: %s", io.EOF, text)
	}
	return io.EOF
}

// explain makes an error of an ssh that ended before the greeting.
func (s *sshStream) explain(op string, t SSHTarget, cause error) error {
	// Its end is waited for because its exit status and its last words are what explains the
	// failure.
	_ = s.Close()
	select {
	case <-s.exited:
	case <-time.After(sshExitWait):
	}
	ended := errors.Is(cause, io.EOF) // else it is ssh that we ended, and its exit status says nothing
	if ended {
		cause = errors.New("the far command ended without linerate's greeting")
	}
	e := &Error{Op: op, Peer: t.String(), Kind: ErrNotLinerate, Err: cause}
	e.Advice = "does the far command run there by hand?"
	var exit *exec.ExitError
	if ended && errors.As(s.exit, &exit) {
		e.Err = fmt.Errorf("ssh: %w", exit)
		switch exit.ExitCode() {
		case 255: // ssh(1), EXIT STATUS: an error of ssh itself
			e.Kind = ErrUnreachable
			e.Advice = t.tryByHand()
		case 127:
			e.Advice = "install linerate on that host, in the PATH of a shell that is not a login shell"
		}
		if text := s.stderr.last(); text != "" {
			e.Err = fmt.Errorf("ssh: %s: %w", text, exit)
		}
	}
	return e
}

// tail keeps the end of what ssh writes to standard error.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if over := len(t.b) - maxStderrBytes; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(b), nil
}

// last gives the last line that is not empty, in printable characters and without the name of the
// program in front.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Control characters are cut out: this text comes from another host and goes to a terminal.
	lines := bytes.Split(bytes.TrimSpace(t.b), []byte("\n"))
	return strings.TrimPrefix(strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, string(lines[len(lines)-1]))), "ssh: ")
}
