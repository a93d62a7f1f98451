package snmp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gosnmp/gosnmp"

	"github.com/linerate/linerate/hub/internal/switches/mib"
	"github.com/linerate/linerate/internal/base/visible"
)

const (
	port     = 161
	retries  = 2
	mostText = 1024 // bytes of one value
)

// ErrSilent is an agent that does not answer.
var ErrSilent = errors.New("does not answer")

// refused is an agent that does not accept user, key or protocol: a kind of [fs.ErrPermission].
type refused string

func (r refused) Error() string        { return string(r) }
func (r refused) Is(target error) bool { return target == fs.ErrPermission }

// Credentials are what an agent wants: a community (2c), or a user with keys (3).
type Credentials struct {
	Community string

	User                string
	Auth, Privacy       string // names of [Auths] and [Privacies]; empty: none
	AuthKey, PrivacyKey string // pass phrases
}

// Options of a session.
type Options struct {
	Address     string // HOST or HOST:PORT
	Credentials Credentials
	Timeout     time.Duration // of one request; three are sent
}

// Auths and Privacies return the names of the protocols.
func Auths() []string     { return []string{"sha256", "sha512", "sha384", "sha224", "sha", "md5"} }
func Privacies() []string { return []string{"aes", "aes192", "aes256", "aes192c", "aes256c", "des"} }

var auths = map[string]gosnmp.SnmpV3AuthProtocol{
	"": gosnmp.NoAuth, "md5": gosnmp.MD5, "sha": gosnmp.SHA, "sha224": gosnmp.SHA224, "sha256": gosnmp.SHA256,
	"sha384": gosnmp.SHA384, "sha512": gosnmp.SHA512,
}

var privacies = map[string]gosnmp.SnmpV3PrivProtocol{
	"": gosnmp.NoPriv, "des": gosnmp.DES, "aes": gosnmp.AES, "aes192": gosnmp.AES192, "aes256": gosnmp.AES256,
	"aes192c": gosnmp.AES192C, "aes256c": gosnmp.AES256C,
}

// Session asks one agent. One goroutine at a time may use it.
type Session struct {
	o     Options
	snmp  *gosnmp.GoSNMP
	count int
	heard int // packets that came, also ones that the library rejects
}

// Split returns host and port of an address.
func Split(address string) (host string, number uint16, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil { // without a port
		host, text = strings.Trim(address, "[]"), strconv.Itoa(port)
	}
	n, bad := strconv.ParseUint(text, 10, 16)
	if host == "" || bad != nil || n == 0 || strings.ContainsAny(host, " /@?") {
		return "", 0, fmt.Errorf("address %q: write HOST, HOST:PORT or [2001:db8::1]:PORT", address)
	}
	return host, uint16(n), nil
}

// Open opens a session. It sends nothing yet, but looks a name up.
func Open(o Options) (*Session, error) {
	host, number, err := Split(o.Address)
	if err != nil {
		return nil, err
	}
	x := &gosnmp.GoSNMP{Target: host, Port: number, Transport: "udp", Version: gosnmp.Version2c,
		Community: o.Credentials.Community, Timeout: cmp.Or(o.Timeout, 2*time.Second), Retries: retries, MaxOids: 60}
	if c := o.Credentials; c.User != "" {
		x.Version, x.Community, x.SecurityModel = gosnmp.Version3, "", gosnmp.UserSecurityModel
		switch {
		case c.Privacy != "":
			x.MsgFlags = gosnmp.AuthPriv
		case c.Auth != "":
			x.MsgFlags = gosnmp.AuthNoPriv
		}
		x.SecurityParameters = &gosnmp.UsmSecurityParameters{UserName: c.User,
			AuthenticationProtocol: auths[c.Auth], AuthenticationPassphrase: c.AuthKey,
			PrivacyProtocol: privacies[c.Privacy], PrivacyPassphrase: c.PrivacyKey}
	}
	if err := x.Connect(); err != nil {
		return nil, fmt.Errorf("open a session with %s: %w", o.Address, err)
	}
	s := &Session{o: o, snmp: x}
	x.OnRecv = func(*gosnmp.GoSNMP) { s.heard++ }
	return s, nil
}

// Close closes the socket.
func (s *Session) Close() error { return s.snmp.Close() }

// Requests returns how many requests were made.
func (s *Session) Requests() int { return s.count }

// Get returns the values of objects.
func (s *Session) Get(ctx context.Context, oids []mib.OID) ([]mib.Binding, error) {
	return s.do(ctx, func() (*gosnmp.SnmpPacket, error) { return s.snmp.Get(texts(oids)) })
}

// Bulk returns what follows each identifier.
func (s *Session) Bulk(ctx context.Context, oids []mib.OID, repetitions int) ([]mib.Binding, error) {
	return s.do(ctx, func() (*gosnmp.SnmpPacket, error) {
		return s.snmp.GetBulk(texts(oids), 0, uint32(repetitions))
	})
}

func (s *Session) do(ctx context.Context, request func() (*gosnmp.SnmpPacket, error)) ([]mib.Binding, error) {
	s.count++
	s.snmp.Context = ctx
	packet, err := request()
	if err != nil {
		return nil, s.inWords(ctx, err)
	}
	if packet.Error == gosnmp.AuthorizationError {
		return nil, refused(fmt.Sprintf("%s refuses: user %q may not read without the other key", s.o.Address,
			visible.Line(s.o.Credentials.User)))
	}
	return bindings(packet)
}

// bindings returns what an answer holds.
func bindings(packet *gosnmp.SnmpPacket) ([]mib.Binding, error) {
	switch packet.Error {
	case gosnmp.NoError:
	case gosnmp.TooBig:
		return nil, mib.ErrTooBig
	default:
		return nil, refusal(packet.Error)
	}
	out := make([]mib.Binding, 0, len(packet.Variables))
	for _, v := range packet.Variables {
		o, err := mib.ParseOID(v.Name)
		if err != nil {
			return nil, fmt.Errorf("read an answer: %w", err)
		}
		out = append(out, mib.Binding{OID: o, Value: value(v), End: v.Type == gosnmp.EndOfMibView})
	}
	return out, nil
}

// value returns a value in one of the types of package mib.
func value(v gosnmp.SnmpPDU) any {
	switch x := v.Value.(type) {
	case []byte:
		return x[:min(len(x), mostText)]
	case string:
		if v.Type == gosnmp.ObjectIdentifier {
			if o, err := mib.ParseOID(x); err == nil {
				return o
			}
			return nil
		}
		return []byte(x[:min(len(x), mostText)])
	case int:
		return int64(x)
	case uint:
		return uint64(x)
	case int64:
		return x
	case uint64:
		return x
	case uint32:
		return uint64(x)
	}
	return nil
}

// refusal is an error code of an agent (RFC 3416 section 3).
type refusal gosnmp.SNMPError

func (r refusal) Error() string { return fmt.Sprintf("error %d of the agent", uint8(r)) }
func (r refusal) Refusal() bool { return true }

// inWords returns an error as one sentence. Texts of the library end with a stack where it failed.
func (s *Session) inWords(ctx context.Context, err error) error {
	c := s.o.Credentials
	user := visible.Line(c.User)
	has := func(text string) bool { return strings.Contains(err.Error(), text) }
	network := net.Error(nil)
	heard := s.heard > 0
	refuse := func(format string, args ...any) error {
		return refused(s.o.Address + " refuses: " + fmt.Sprintf(format, args...))
	}
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s %w: no SNMP agent listens there", s.o.Address, ErrSilent)
	case errors.Is(err, gosnmp.ErrUnknownUsername):
		return refuse("it has no user %q", user)
	case errors.Is(err, gosnmp.ErrDecryption):
		return refuse("the privacy key or protocol of user %q is wrong", user)
	case errors.Is(err, gosnmp.ErrUnknownSecurityLevel):
		return refuse("user %q needs other protocols: give both keys, or one", user)
	case errors.Is(err, gosnmp.ErrNotInTimeWindow):
		return refuse("its clock of SNMPv3 does not agree with its own answers")
	case errors.Is(err, gosnmp.ErrWrongDigest), has("not authentic"):
		// The agent's report of an unknown user or a wrong key has no signature, so that anybody could
		// have sent it.
		return refuse("user %q, its authentication key or its protocol is wrong", user)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout(),
		errors.Is(err, gosnmp.ErrMaxRetriesExceeded), has("timeout"):
		switch {
		case c.User != "" && heard:
			return refuse("it answers at first and then no more: the privacy key or protocol of user %q may be wrong", user)
		case c.User != "" || heard:
			return fmt.Errorf("%s %w: no host, no agent, an access list, or too many lost packets", s.o.Address, ErrSilent)
		}
		return fmt.Errorf("%s %w: no host, no agent, an access list, or a wrong community, about which agents are silent",
			s.o.Address, ErrSilent)
	case has("recover:"):
		return fmt.Errorf("%s: an answer is malformed", s.o.Address)
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("ask %s: %.200s", s.o.Address, visible.Line(line))
}

func texts(oids []mib.OID) []string {
	out := make([]string, len(oids))
	for i, o := range oids {
		out[i] = "." + o.String()
	}
	return out
}
