package advice

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

// TestNameServers judges the configuration of a resolver as write-ups print it.
func TestNameServers(t *testing.T) {
	text := `options {
	recursive-clients 1000000;
	max-cache-size 100K; // smaller, so that changes appear sooner
	cleaning-interval 1;
	lame-ttl 900;
	dnssec-enable yes;
	edns-udp-size 4096;
	tcp-clients 150;
	min-cache-ttl 200;
	minimal-responses yes;
};
server:
    num-threads: 4
    msg-cache-size: 100k    # per thread
    rrset-cache-size: 256m
    cache-max-ttl: 60
    so-reuseport: yes
    infra-lame-ttl: 900
    edns-buffer-size: 4096
`
	want := map[string]Verdict{
		"named:recursive-clients": Harmful, "named:max-cache-size": Harmful, "named:cleaning-interval": Removed,
		"named:lame-ttl": Ignored, "named:dnssec-enable": Removed, "named:edns-udp-size": Harmful,
		"named:tcp-clients": NowDefault, "named:min-cache-ttl": Removed, "named:minimal-responses": StillRight,
		"unbound:num-threads": StillRight, "unbound:msg-cache-size": Harmful, "unbound:rrset-cache-size": StillRight,
		"unbound:cache-max-ttl": Harmful, "unbound:so-reuseport": NowDefault, "unbound:infra-lame-ttl": Ignored,
		"unbound:edns-buffer-size": Harmful,
	}
	parsed, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, j := range (Target{}).Judge(parsed) {
		if verdict, ok := want[j.Knob]; !ok || verdict != j.Verdict {
			t.Errorf("%s = %s is %s, want %s", j.Knob, j.Value, j.Verdict, verdict)
		}
		seen++
	}
	if seen != len(want) {
		t.Errorf("%d settings, want %d: %+v", seen, len(want), parsed.Settings)
	}
}

// TestNamedForms reads statements as named.conf may have them: several on a line, in views, behind
// comments, and not those inside of comments.
func TestNamedForms(t *testing.T) {
	text := `options { recursive-clients 1000000; };
options {
	/* max-cache-size 100K;
	 - lame-ttl 900;
	*/
	max-cache-size 100K; cleaning-interval 1; # lame-ttl 5;
	/* a */ tcp-clients 150; /* lame-ttl 6; */ // prefetch 0; lame-ttl 7;
	version "a # b"; edns-udp-size 4096;
	listen-on port 53 { any; }; /* without an end: min-cache-ttl 200;
};
view "internal" { match-clients { any; }; max-cache-size 2M; zone "x" { type master; file "y"; }; };
`
	parsed, err := Parse([]byte(strings.ReplaceAll(text, "\n", "\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range parsed.Settings {
		if s.Knob != "named:version" {
			got = append(got, fmt.Sprintf("%d %s=%s", s.Line, strings.TrimPrefix(s.Knob, "named:"), s.Value))
		}
	}
	want := []string{"1 recursive-clients=1000000", "6 max-cache-size=100K", "6 cleaning-interval=1", "7 tcp-clients=150",
		"8 edns-udp-size=4096", "11 max-cache-size=2M"}
	if !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	if prose := "options { };\nSee /proc/sys/* and /sys/*/x */ for more.\n"; withoutBlockComments(prose) != prose {
		t.Errorf("a path is a comment: %q", withoutBlockComments(prose))
	}
}

// TestNamedAgrees asks named-checkconf about every option of named in the facts: it refuses those
// that are removed, warns of deprecated ones, and accepts the others.
func TestNamedAgrees(t *testing.T) {
	program := testenv.Program(t, "named-checkconf")
	check := func(name, value string) (refused bool, said string) {
		file := filepath.Join(t.TempDir(), "named.conf")
		if err := os.WriteFile(file, []byte("options { "+name+" "+value+"; };\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(program, file).CombinedOutput()
		return err != nil, string(out)
	}
	for _, f := range facts() {
		name, ok := strings.CutPrefix(f.Knob, "named:")
		if !ok {
			continue
		}
		for _, r := range f.Rules {
			switch {
			case r.Verdict == Removed && r.asksValue():
				if refused, said := check(name, "999999"); !refused || !strings.Contains(said, "out of range") {
					t.Errorf("%s 999999: %q, but the fact says removed", name, said)
				}
			case r.Verdict == Removed:
				if refused, said := check(name, "1"); !refused || !strings.Contains(said, "no longer exists") {
					t.Errorf("%s: %q, but the fact says removed", name, said)
				}
			case strings.Contains(r.Why, "deprecated"):
				value := "1"
				if name == "dialup" || name == "glue-cache" {
					value = "yes"
				}
				if refused, said := check(name, value); refused || !strings.Contains(said, "deprecated") {
					t.Errorf("%s: %q, but the fact says deprecated", name, said)
				}
			case r.Verdict == NowDefault:
				for _, value := range r.Values {
					if refused, said := check(name, value); refused {
						t.Errorf("%s %s: %q, but the fact says it is the default", name, value, said)
					}
				}
			}
		}
	}
}

// TestUnboundAgrees compares the defaults of the facts with those of Unbound.
func TestUnboundAgrees(t *testing.T) {
	program := testenv.Program(t, "unbound-checkconf")
	file := filepath.Join(t.TempDir(), "unbound.conf")
	if err := os.WriteFile(file, []byte("server:\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range facts() {
		name, ok := strings.CutPrefix(f.Knob, "unbound:")
		if !ok {
			continue
		}
		for _, r := range f.Rules {
			if r.Verdict != NowDefault {
				continue
			}
			out, err := exec.Command(program, "-o", name, file).CombinedOutput()
			value := strings.TrimSpace(string(out))
			if err != nil || r.Values[len(r.Values)-1] != value {
				t.Errorf("%s is %q by default (%v), the fact says %v", name, value, err, r.Values)
			}
		}
	}
}
