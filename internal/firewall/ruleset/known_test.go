package ruleset_test

import (
	"testing"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// TestAnswers: what the shape of a packet says of a condition without a field of the model. The
// answers to a SYN by nft and iptables are compared with the kernel's in package read. Those of pf
// and ipfw follow pf_test_rule and O_TCPFLAGS, O_ESTAB of FreeBSD, and what pfctl and ipfw print.
func TestAnswers(t *testing.T) {
	const yes, no, unknown = "yes", "no", "unknown"
	shapes := map[string]ruleset.Packet{
		"syn":         packet("em0", "10.1.1.1", "10.2.2.2", 6, 1, 80, ruleset.StateNew),
		"established": packet("em0", "10.1.1.1", "10.2.2.2", 6, 1, 80, ruleset.StateEstablished),
		"invalid":     packet("em0", "10.1.1.1", "10.2.2.2", 6, 1, 80, ruleset.StateInvalid),
		"udp":         packet("em0", "10.1.1.1", "10.2.2.2", 17, 1, 80, ruleset.StateNew),
	}
	for _, c := range []struct{ text, syn, established, invalid, udp string }{
		{"flags S/SA", yes, no, unknown, yes},
		{"flags /SFRA", no, no, unknown, yes},
		{"flags SA/SA", no, unknown, unknown, yes},
		{"flags any", yes, yes, yes, yes},
		{"setup", yes, no, unknown, no},
		{"not setup", no, yes, unknown, yes},
		{"established", no, yes, unknown, no},
		{"not established", yes, no, unknown, yes},
		{"tcpflags syn,!ack", yes, no, unknown, no},
		{"tcpflags syn,fin", no, unknown, unknown, no},
		{"check-state", no, unknown, unknown, no},
		{"via em0", yes, yes, yes, yes},
		{"via em*", yes, yes, yes, yes},
		{"not via em0", no, no, no, no},
		{"via em1", no, no, no, no},
		{"via 10.0.0.1", unknown, unknown, unknown, unknown},
		{"on em0", yes, yes, yes, yes},
		{"on ! em0", no, no, no, no},
		{"on egress", unknown, unknown, unknown, unknown},
		{"on rdomain 1", unknown, unknown, unknown, unknown},
		{"--syn", yes, no, unknown, no},
		{"-m tcp ! --syn", no, yes, unknown, no},
		{"--tcp-flags SYN,RST SYN", yes, unknown, unknown, no},
		{"-m tcp --tcp-flags FIN,SYN,RST,PSH,ACK,URG NONE", no, no, unknown, no},
		{"tcp flags & (fin | syn | rst | ack) == syn", yes, no, unknown, no},
		{"tcp flags & (fin|syn|rst|ack) != syn", no, yes, unknown, no},
		{"tcp flags & (syn | ack) == syn,ack", no, unknown, unknown, no},
		{"tcp flags syn / fin,syn,rst,ack", yes, no, unknown, no},
		{"tcp flags != syn / fin,syn,rst,ack", no, yes, unknown, no},
		{"tcp flags syn,ack", yes, yes, unknown, no},
		{"tcp flags fin,rst", no, unknown, unknown, no},
		{"tcp flags ! syn,ack", no, no, unknown, no},
		{"tcp flags == syn", yes, no, unknown, no},
		{"tcp flags != syn", no, yes, unknown, no},
		{"tcp flags { syn, ack }", unknown, unknown, unknown, unknown},
		{"limit rate 5/second", unknown, unknown, unknown, unknown},
	} {
		for name, want := range map[string]string{"syn": c.syn, "established": c.established, "invalid": c.invalid,
			"udp": c.udp} {
			got, p := unknown, shapes[name]
			p.Out = "" // it comes in
			if holds, known := p.Answers(ruleset.Opaque{Text: c.text}); known {
				got = map[bool]string{true: yes, false: no}[holds]
			}
			if got != want {
				t.Errorf("%s: %s says %s, want %s", name, c.text, got, want)
			}
		}
	}
}
