package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// answerTime bounds one exchange with a server.
const answerTime = 10 * time.Second

// readFunc reads a server's statistics once, with what it could not see.
type readFunc func(ctx context.Context) (Statistics, []string, error)

// reader returns the way to a server's statistics.
func reader(ctx context.Context, t Target, s snapshot) (readFunc, error) {
	sockets := s.unix
	if t.Endpoint != "" && !strings.HasPrefix(t.Endpoint, "http://") {
		sockets = []string{t.Endpoint}
	}
	switch t.Kind {
	case BIND:
		return bindReader(ctx, t, s)
	case Unbound:
		return unboundReader(sockets, s)
	case Knot:
		if strings.HasPrefix(t.Endpoint, "http://") {
			return pageReader(t, "/stats"), nil
		}
		return knotReader(sockets)
	case PowerDNS:
		if strings.HasPrefix(t.Endpoint, "http://") {
			return pageReader(t, "/api/v1/servers/localhost/statistics", "/api/v1/servers/localhost/config"), nil
		}
		return powerDNSReader(sockets)
	case Dnsmasq:
		return func(ctx context.Context) (Statistics, []string, error) {
			st, err := dnsmasqLive(ctx, t.Address)
			return st, nil, err
		}, nil
	case Resolved:
		return func(ctx context.Context) (Statistics, []string, error) {
			st, err := resolvedLive(ctx, t.Endpoint)
			return st, nil, err
		}, nil
	}
	return pageReader(t, "/json/v1/server"), nil // a statistics channel elsewhere
}

// Read reads the statistics of a server of a known kind once, at its endpoint.
func Read(ctx context.Context, t Target) (Statistics, error) {
	read, err := reader(ctx, t, snapshot{})
	if err != nil {
		return Statistics{}, err
	}
	s, _, err := read(ctx)
	return s, err
}

// pageReader reads pages of one server over HTTP.
func pageReader(t Target, paths ...string) readFunc {
	return func(ctx context.Context) (Statistics, []string, error) {
		var all []byte
		u, err := url.Parse(t.Endpoint)
		if err != nil {
			return Statistics{}, nil, err
		}
		if strings.Trim(u.Path, "/") != "" {
			paths = []string{u.Path}
		}
		for _, p := range paths {
			body, err := get(ctx, u.Host, p, t.APIKey)
			if err != nil {
				return Statistics{}, nil, fmt.Errorf("get %s%s: %w", u.Host, p, err)
			}
			all = append(all, body...)
		}
		st, err := Parse(all)
		return st, nil, err
	}
}

// ErrNotExposed reports that a server shows its statistics nowhere. The message says what enables
// them.
var ErrNotExposed = errors.New("the server exposes no statistics")

// bindReader finds the statistics channel among the ports on which named listens.
func bindReader(ctx context.Context, t Target, s snapshot) (readFunc, error) {
	endpoint, controls := t.Endpoint, t.RNDCConfig != ""
	for _, at := range s.tcp {
		if endpoint != "" {
			break
		}
		switch at.Port() {
		case t.Address.Port(), 53, 443, 853:
			continue
		case 953: // rndc's: a page asked for there would end up in the log
			controls = true
			continue
		}
		where := "http://" + reachable(at).String()
		probe := t
		probe.Endpoint = where
		for _, page := range []string{"/json/v1/server", "/xml/v3/server"} {
			if _, _, err := pageReader(probe, page)(ctx); err == nil {
				endpoint = where + page
				break
			}
		}
	}
	if endpoint == "" {
		return nil, fmt.Errorf("observe named at %s: %w: named.conf needs `statistics-channels { inet 127.0.0.1 port 8053 "+
			"allow { 127.0.0.1; }; };`", t.Address, ErrNotExposed)
	}
	t.Endpoint = endpoint
	pages := pageReader(t, "/json/v1/server")
	return func(ctx context.Context) (Statistics, []string, error) {
		st, _, err := pages(ctx)
		if err != nil || !controls {
			return st, []string{"`rndc status`: named has no control channel at its port 953; give --rndc-config, " +
				"or the query log and the limits of clients are not known."}, err
		}
		status, err := rndcStatus(ctx, t.RNDCConfig)
		if err != nil {
			return st, []string{"`rndc status`: " + err.Error() + "."}, nil
		}
		return st, nil, st.Merge(status)
	}, nil
}

// reachable replaces the address of a socket that listens everywhere.
func reachable(at netip.AddrPort) netip.AddrPort {
	if !at.Addr().IsUnspecified() {
		return at
	}
	if at.Addr().Is6() {
		return netip.AddrPortFrom(netip.IPv6Loopback(), at.Port())
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
}

// rndcStatus runs rndc, which holds the key to the control channel.
func rndcStatus(ctx context.Context, config string) (Statistics, error) {
	path, err := exec.LookPath("rndc")
	if err != nil {
		path = "/usr/sbin/rndc"
	}
	args := []string{"status"}
	if config != "" {
		args = []string{"-c", config, "status"}
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
		return Statistics{}, fmt.Errorf("%w %s", err, first)
	}
	return parseRNDCStatus(out)
}

// unboundSettings are those that [unboundSetting] understands.
var unboundSettings = []string{"msg-cache-size", "rrset-cache-size", "num-threads", "num-queries-per-thread",
	"incoming-num-tcp", "log-queries", "log-replies", "verbosity", "qname-minimisation", "prefetch", "module-config"}

// unboundReader speaks the control protocol (a line each way, unbound-control(8)) on the local
// socket or on a port without certificates.
func unboundReader(sockets []string, s snapshot) (readFunc, error) {
	if len(sockets) == 0 {
		for _, at := range s.tcp {
			if at.Port() == 8953 {
				sockets = append(sockets, reachable(at).String())
			}
		}
	}
	if len(sockets) == 0 {
		return nil, fmt.Errorf("observe unbound: %w: unbound.conf needs `remote-control: control-enable: yes` and "+
			"`control-interface: /run/unbound.ctl`", ErrNotExposed)
	}
	at := sockets[0]
	ask := func(ctx context.Context, command string) ([]byte, error) {
		return exchange(ctx, at, []byte("UBCT1 "+command+"\n"), nil)
	}
	return func(ctx context.Context) (Statistics, []string, error) {
		text, err := ask(ctx, "stats_noreset")
		if err != nil {
			return Statistics{}, nil, fmt.Errorf("ask control socket %s of unbound: %w", at, err)
		}
		if !bytes.Contains(text, []byte("total.num.queries=")) {
			return Statistics{}, nil, fmt.Errorf("ask control socket %s of unbound: it answers %.60q; a port with "+
				"certificates is not spoken: save `unbound-control stats_noreset` and give --from", at, text)
		}
		var settings []byte
		for _, name := range unboundSettings {
			if value, err := ask(ctx, "get_option "+name); err == nil && !bytes.HasPrefix(value, []byte("error")) {
				settings = fmt.Appendf(settings, "%s%s=%s\n", settingPrefix, name, bytes.TrimSpace(value))
			}
		}
		if status, err := ask(ctx, "status"); err == nil {
			text = append(text, status...)
		}
		if infra, err := ask(ctx, "dump_infra"); err == nil {
			text = append(text, infra...)
		}
		st, err := parseUnbound(append(settings, text...))
		if _, extended := st.Get(Upstream); err == nil && !extended {
			return st, []string{"Unbound's upstream queries and histogram: unbound.conf needs `extended-statistics: yes`."},
				nil
		}
		return st, nil, err
	}, nil
}

// knotQuestion joins what kresd exposes, in one line of JSON.
const knotQuestion = `tojson({v=package_version(),size=cache.current_size,` +
	`debug=log_level and log_level()=='debug',s=stats.list(),c=cache.stats(),w=worker.stats()})`

// knotReader asks the control socket of each process.
func knotReader(sockets []string) (readFunc, error) {
	if len(sockets) == 0 {
		return nil, fmt.Errorf("observe kresd: %w: no control socket is visible", ErrNotExposed)
	}
	return func(ctx context.Context) (Statistics, []string, error) {
		var all []byte
		for _, at := range sockets {
			answer, err := exchange(ctx, at, []byte(knotQuestion+"\n"), []byte("\n> "))
			if err != nil {
				return Statistics{}, nil, fmt.Errorf("ask control socket %s of kresd: %w", at, err)
			}
			text := bytes.TrimSuffix(bytes.TrimPrefix(answer, []byte("> ")), []byte("\n> "))
			text = bytes.Trim(bytes.TrimSpace(text), "'")
			if !bytes.HasPrefix(text, []byte("{")) {
				return Statistics{}, nil, fmt.Errorf("ask control socket %s of kresd: it answers %.60q; the module stats "+
					"must be loaded", at, text)
			}
			all = append(append(all, text...), '\n')
		}
		st, err := parseKnot(all)
		return st, nil, err
	}, nil
}

// powerDNSReader speaks the protocol of rec_control since 4.5: a status of four octets, a length of
// eight, both of the host's byte order, and the text.
func powerDNSReader(sockets []string) (readFunc, error) {
	if len(sockets) == 0 {
		return nil, fmt.Errorf("observe PowerDNS Recursor: %w: no control socket is visible", ErrNotExposed)
	}
	ask := func(ctx context.Context, command string) ([]byte, error) {
		q := binary.NativeEndian.AppendUint32(nil, 0)
		q = binary.NativeEndian.AppendUint64(q, uint64(len(command)))
		answer, err := exchange(ctx, sockets[0], append(q, command...), nil)
		if err != nil {
			return nil, fmt.Errorf("ask control socket %s of PowerDNS Recursor: %w", sockets[0], err)
		}
		if len(answer) < 12 {
			return nil, fmt.Errorf("ask control socket %s of PowerDNS Recursor: %w", sockets[0], io.ErrUnexpectedEOF)
		}
		return answer[12:], nil
	}
	return func(ctx context.Context) (Statistics, []string, error) {
		text, err := ask(ctx, "get-all")
		if err != nil {
			return Statistics{}, nil, err
		}
		for _, name := range []string{"max-mthreads", "max-tcp-clients", "threads", "quiet", "trace",
			"qname-minimization", "dnssec", "refresh-on-ttl-perc"} {
			if setting, err := ask(ctx, "get-parameter "+name); err == nil {
				text = append(append(text, '\n'), setting...)
			}
		}
		st, err := parsePowerDNS(text)
		return st, nil, err
	}, nil
}

// dnsmasqLive asks for the records of class CHAOS in which dnsmasq keeps its counters.
func dnsmasqLive(ctx context.Context, at netip.AddrPort) (Statistics, error) {
	var text []byte
	for _, name := range []string{"version", "cachesize", "insertions", "evictions", "misses", "hits", "servers"} {
		answers, err := askChaos(ctx, at, name+".bind.")
		if err != nil {
			return Statistics{}, fmt.Errorf("ask %s for %s.bind: %w", at, name, err)
		}
		for _, a := range answers {
			text = fmt.Appendf(text, "%s.bind %q\n", name, a)
		}
	}
	return parseDnsmasq(text)
}

// askChaos returns the TXT records of a name in class CHAOS.
func askChaos(ctx context.Context, at netip.AddrPort, name string) ([]string, error) {
	id := uint16(time.Now().UnixNano())
	packed, err := chaosQuestion(id, name)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "udp", at.String())
	if err != nil {
		return nil, err
	}
	defer conn.Close() // nothing is unwritten
	b := make([]byte, 4096)
	for range 3 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if _, err := conn.Write(packed); err != nil {
			return nil, err
		}
		if err := conn.SetReadDeadline(time.Now().Add(answerTime / 3)); err != nil {
			return nil, err
		}
		n, err := conn.Read(b)
		if err != nil {
			continue
		}
		if all, ok := chaosAnswer(b[:n], id); ok {
			return all, nil
		}
	}
	return nil, errors.New("no answer")
}

// chaosQuestion writes the question. It and chaosAnswer use the parts of dnsmessage, because its
// Message brings the code for records of every type.
func chaosQuestion(id uint16, name string) ([]byte, error) {
	owner, err := dnsmessage.NewName(name)
	if err != nil {
		return nil, err
	}
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: id, RecursionDesired: true})
	q := dnsmessage.Question{Name: owner, Type: dnsmessage.TypeTXT, Class: dnsmessage.ClassCHAOS}
	if err := errors.Join(b.StartQuestions(), b.Question(q)); err != nil {
		return nil, err
	}
	return b.Finish()
}

// chaosAnswer returns the strings of the TXT records; ok is false for a broken message and for the
// answer to another question.
func chaosAnswer(m []byte, id uint16) (all []string, ok bool) {
	var p dnsmessage.Parser
	h, err := p.Start(m)
	if err != nil || h.ID != id || p.SkipAllQuestions() != nil {
		return nil, false
	}
	for {
		r, err := p.AnswerHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return all, p.SkipAllAuthorities() == nil && p.SkipAllAdditionals() == nil
		}
		if err == nil && r.Type == dnsmessage.TypeTXT {
			var txt dnsmessage.TXTResource
			txt, err = p.TXTResource()
			all = append(all, txt.TXT...)
		} else if err == nil {
			err = p.SkipAnswer()
		}
		if err != nil {
			return nil, false
		}
	}
}

// resolvedMonitor is where systemd-resolved speaks Varlink to root.
const resolvedMonitor = "/run/systemd/resolve/io.systemd.Resolve.Monitor"

func resolvedLive(ctx context.Context, at string) (Statistics, error) {
	if at == "" {
		at = resolvedMonitor
	}
	answer, err := exchange(ctx, at, []byte(`{"method":"io.systemd.Resolve.Monitor.DumpStatistics"}`+"\x00"), []byte{0})
	if errors.Is(err, fs.ErrNotExist) {
		return Statistics{}, fmt.Errorf("ask systemd-resolved: %w; before systemd 254 save `resolvectl statistics` and "+
			"give --from", err)
	}
	if err != nil {
		return Statistics{}, fmt.Errorf("ask systemd-resolved: %w", err)
	}
	return parseResolvedJSON(answer)
}

// exchange sends a question to a socket, a path or HOST:PORT, and returns what it answers: all
// until it closes the connection, or until the given end.
func exchange(ctx context.Context, at string, question, end []byte) (all []byte, err error) {
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = ctx.Err()
		}
	}()
	network := "tcp"
	if filepath.IsAbs(at) || strings.HasPrefix(at, "@") {
		network = "unix"
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, at)
	if err != nil {
		return nil, err
	}
	defer conn.Close() // what was read decides
	if err := conn.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return nil, err
	}
	// The end of ctx ends the exchange.
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := conn.Write(question); err != nil {
		return nil, err
	}
	if len(end) == 0 {
		return io.ReadAll(io.LimitReader(conn, MostBytes))
	}
	b := make([]byte, 1<<16)
	for len(all) < MostBytes {
		n, err := conn.Read(b)
		all = append(all, b[:n]...)
		if bytes.HasSuffix(all, end) && len(all) > len(end) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the answer has no end")
}

// get reads a page over HTTP/1.0, which has no chunks and ends with the connection.
func get(ctx context.Context, address, path, key string) ([]byte, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(address, "80")
	}
	q := fmt.Sprintf("GET %s HTTP/1.0\r\nHost: %s\r\nConnection: close\r\n", path, address)
	if key != "" {
		q += "X-API-Key: " + key + "\r\n"
	}
	all, err := exchange(ctx, address, []byte(q+"\r\n"), nil)
	if err != nil {
		return nil, err
	}
	head, body, ok := bytes.Cut(all, []byte("\r\n\r\n"))
	status := strings.Fields(string(head))
	if !ok || len(status) < 2 {
		return nil, errors.New("the answer is no page")
	}
	if status[1] != "200" {
		return nil, fmt.Errorf("status %s", status[1])
	}
	return body, nil
}
