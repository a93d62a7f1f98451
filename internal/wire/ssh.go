package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/base/shell"
)

// SSHTarget is a far end reached over the user's own ssh.
type SSHTarget struct {
	User string // empty: from ssh's configuration
	Host string // name, alias of the user's ssh configuration, or address (IPv6 without brackets)
	Port int    // 0: from ssh's configuration
}

// ParseSSHTarget reads ssh://[USER@]HOST[:PORT]. It refuses text that ssh could take for an option,
// and text that cannot be a host.
func ParseSSHTarget(text string) (SSHTarget, error) {
	u, err := url.Parse(escapeZone(text))
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
	case strings.Contains(t.Host, ":") && !isIPv6(t.Host):
		return bad("brackets are for an IPv6 address")
	case strings.Contains(zoneless(t.Host), "%"):
		return bad("'%' belongs to the zone of an IPv6 address alone, as in ssh://[fe80::1%eth0]")
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

// escapeZone writes the '%' before the zone of an IPv6 address as %25, which a URL wants
// (RFC 6874), where the user typed the address as ping and ip do: ssh://[fe80::1%eth0].
func escapeZone(text string) string {
	address, rest, has := strings.Cut(text, "]")
	before, zone, zoned := strings.Cut(address, "%")
	if !has || !zoned || !strings.Contains(before, "[") || strings.HasPrefix(zone, "25") {
		return text
	}
	return before + "%25" + zone + "]" + rest
}

// zoneless returns a host without the zone that an IPv6 address may have.
func zoneless(host string) string {
	if a, err := netip.ParseAddr(host); err == nil && !strings.Contains(a.Zone(), "%") {
		return a.WithZone("").String()
	}
	return host
}

// String returns the target as the user writes it.
func (t SSHTarget) String() string {
	host := t.Host
	if strings.Contains(host, ":") {
		host = "[" + strings.Replace(host, "%", "%25", 1) + "]"
	}
	if t.Port != 0 {
		host += ":" + strconv.Itoa(t.Port)
	}
	if t.User != "" {
		host = url.User(t.User).String() + "@" + host
	}
	return "ssh://" + host
}

// harmlessWord reports whether ssh cannot take a word for an option, and its ProxyCommand cannot
// take it for shell syntax.
func harmlessWord(s string) bool {
	return s != "" && s[0] != '-' && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune("'\"`$\\;&<>|(){}!*?", r)
	})
}

// isIPv6 reports whether text is an IPv6 address, perhaps with a zone.
func isIPv6(text string) bool {
	a, err := netip.ParseAddr(text)
	return err == nil && a.Is6()
}

// args returns the options of ssh for this target, up to and including the host.
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

// tryByHand returns advice for a target that ssh does not reach.
func (t SSHTarget) tryByHand() string {
	words := t.args()
	return fmt.Sprintf("does `ssh %s` work by hand?", strings.Join(append(words[:len(words)-2], t.Host), " "))
}

const (
	greetingPrefix = "linerate/1 data-port="
	// maxGreetingBytes limits the output of a far shell's start-up files before the greeting.
	maxGreetingBytes = 64 << 10
	maxStderrBytes   = 4 << 10
	// sshExitWait is how long ssh may take to exit after its standard input was closed; meanwhile
	// the far end undoes trials.
	sshExitWait = 5 * time.Second
)

// WriteGreeting reports to the near end of an ssh connection that the far end has started, and the
// TCP port of its data listener.
func WriteGreeting(w io.Writer, dataPort int) error {
	if _, err := fmt.Fprintf(w, "%s%d\n", greetingPrefix, dataPort); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	return nil
}

// parseGreeting parses one line of the far end.
func parseGreeting(line string) (dataPort int, ok bool) {
	digits, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), greetingPrefix)
	if !ok {
		return 0, false
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	return int(port), err == nil && port != 0
}

// DefaultSSHCommand is the command that SSH runs at the far end by default.
var DefaultSSHCommand = []string{"linerate", "serve", "--stdio"}

// SSH starts command at target (ssh://[USER@]HOST[:PORT]) with the user's own ssh, configuration
// and agent. It returns the control channel over ssh's standard input and output, and the address
// for data connections: the real host name that `ssh -G` prints, with the port from the far end's
// greeting. ctx limits only the start; ssh ends with the Conn. ssh itself asks for passwords at the
// terminal. Options go to ssh before the target, as in -4. Errors are *Error with ssh's standard
// error.
func SSH(ctx context.Context, target string, command []string, options ...string) (*Conn, string, error) {
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
	options = append([]string{"-T"}, options...)
	if c := config["connecttimeout"]; c == "none" || c == "0" {
		// Otherwise a silent host delays the start by the two minutes of the kernel's SYN retries.
		// The user's own setting takes precedence.
		options = append(options, "-o", fmt.Sprintf("ConnectTimeout=%d", int(dialTimeout.Seconds())))
	}
	// ssh joins its arguments with blanks and the far shell splits them again, so each word is
	// quoted for that shell.
	s, err := startSSH(append(t.args(options...), shell.Join(command)))
	if err != nil {
		return nil, "", &Error{Op: op, Peer: t.String(), Kind: ErrUnreachable, Err: err}
	}
	// ssh has no time limit for a far command that starts and prints nothing; killing ssh ends the
	// read.
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
	// ssh's authentication serves the channel: no key, and no control listener at the far end.
	return NewConn(s), net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// config runs ssh -G to resolve the target with ssh's configuration. If ssh lacks -G (before 6.8),
// config returns nil, and the target is used as typed.
func (t SSHTarget) config(ctx context.Context) map[string]string {
	bounded, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	out, err := exec.CommandContext(bounded, "ssh", t.args("-G")...).Output()
	if err != nil {
		return nil
	}
	return parseSSHConfig(out)
}

// parseSSHConfig parses the output of `ssh -G`: one "keyword value" per line; the first of a
// keyword counts.
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

// readGreeting skips the far shell's output and reads the port.
func readGreeting(r *bufio.Reader) (int, error) {
	for seen := 0; seen < maxGreetingBytes; {
		// Never more than the reader's buffer: a far shell that prints one endless line must not
		// fill the memory.
		line, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return 0, err
		}
		if port, ok := parseGreeting(string(line)); ok && err == nil {
			return port, nil
		}
		seen += len(line)
	}
	return 0, errors.New("the far end printed much text, but no greeting of linerate")
}

// sshStream is the standard input and output of a running ssh.
type sshStream struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	pipe   *io.PipeReader
	out    *bufio.Reader // over pipe
	stderr *tail
	exited chan struct{} // closed after Wait returned; exit is set by then
	exit   error
	once   sync.Once
}

// startSSH runs ssh. The user's terminal remains its controlling terminal, for passwords.
func startSSH(args []string) (*sshStream, error) {
	s := &sshStream{cmd: sshProgram(args), stderr: &tail{}, exited: make(chan struct{})}
	s.cmd.Stderr = s.stderr
	// A grandchild (a ControlMaster in the background) may keep standard error open; do not wait
	// for its end.
	s.cmd.WaitDelay = time.Second
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// A separate pipe, because exec closes that of StdoutPipe as soon as ssh ends, together with
	// unread data.
	out, outWriter := io.Pipe()
	s.cmd.Stdout = outWriter
	s.in, s.pipe, s.out = in, out, bufio.NewReaderSize(out, maxGreetingBytes)
	// Not exec.CommandContext: ctx covers only the start, and ssh runs as long as the Conn.
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

// Read reads the far end's output, and then io.EOF together with ssh's last message.
func (s *sshStream) Read(b []byte) (int, error) { return s.out.Read(b) }

// Write writes to the far end's input.
func (s *sshStream) Write(b []byte) (int, error) { return s.in.Write(b) }

// Close closes the far end's input, and kills ssh if it does not exit.
func (s *sshStream) Close() error {
	s.once.Do(func() {
		_ = s.in.Close()   // fails only if it is closed already
		_ = s.pipe.Close() // never fails; later output has no reader
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

// endReason returns the read error at the end of ssh: io.EOF with ssh's message, if it printed one.
func (s *sshStream) endReason() error {
	if text := s.stderr.last(); text != "" {
		return fmt.Errorf("%w: ssh: %s", io.EOF, text)
	}
	return io.EOF
}

// explain returns the error for an ssh that ended before the greeting.
func (s *sshStream) explain(op string, t SSHTarget, cause error) error {
	// Wait for the end of ssh, because its exit status and its last message explain the failure.
	_ = s.Close()
	select {
	case <-s.exited:
	case <-time.After(sshExitWait):
	}
	ended := errors.Is(cause, io.EOF) // otherwise this process killed ssh, and its exit status has no meaning
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

// tail keeps the end of ssh's standard error.
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

// last returns the last non-empty line, in printable characters and without ssh's name at the
// beginning.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Remove control characters: this text comes from another host and goes to a terminal.
	lines := bytes.Split(bytes.TrimSpace(t.b), []byte("\n"))
	return strings.TrimPrefix(strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, string(lines[len(lines)-1]))), "ssh: ")
}
