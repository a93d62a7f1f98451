package loop

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/diagnose/casefile"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/snapshot"
	"github.com/linerate/linerate/internal/host/sosreport"
	"github.com/linerate/linerate/internal/traffic"
)

// report writes an unpacked sosreport of a host with the given number of retransmitted segments at
// a moment.
func report(t *testing.T, date, name, retransmitted string) string {
	t.Helper()
	dir := t.TempDir()
	for file, content := range map[string]string{
		"sos_commands/date/date_--utc": date + "\n",
		"sos_commands/host/hostname":   name + "\n",
		"sos_commands/networking/ip_-d_address": "2: eth0: <UP,LOWER_UP> mtu 1500 qdisc mq state UP qlen 1000\n" +
			"    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n",
		"proc/stat":     "cpu0 100 0 0 100\nbtime 1700000000\n",
		"proc/net/snmp": "Tcp: OutSegs RetransSegs\nTcp: 10000 " + retransmitted + "\n",
	} {
		to := filepath.Join(dir, filepath.FromSlash(file))
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755),
			os.WriteFile(to, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSentOneMoment(t *testing.T) {
	v, err := Sent(t.Context(), from(""), report(t, "Mon Dec 25 12:00:00 UTC 2023", "web1", "3"))
	if err != nil {
		t.Fatal(err)
	}
	if v.Near.Name != "web1" || len(v.Watched) != 1 || !v.Watched[0].SinceBoot || v.Watched[0].Seconds <= 0 ||
		v.Watched[0].Counters["Tcp.RetransSegs"] != 3 {
		t.Errorf("case %+v", v.Case)
	}
	if len(v.Findings) == 0 || len(v.Blind) == 0 {
		t.Errorf("findings %v, blind %v", v.Findings, v.Blind)
	}
}

func TestSentTwoMoments(t *testing.T) {
	monday, tuesday := report(t, "Mon Dec 25 12:00:00 UTC 2023", "web1", "3"),
		report(t, "Tue Dec 26 12:00:00 UTC 2023", "web1", "10")
	for _, names := range [][]string{{monday, tuesday}, {tuesday, monday}} {
		v, err := Sent(t.Context(), from(""), names...)
		if err != nil {
			t.Fatal(err)
		}
		if s := v.Watched[0]; s.SinceBoot || s.Seconds != 86400 || s.Counters["Tcp.RetransSegs"] != 7 {
			t.Errorf("span %+v", s)
		}
	}
	other := report(t, "Tue Dec 26 12:00:00 UTC 2023", "web2", "10")
	if _, err := Sent(t.Context(), from(""), monday, other); !errors.Is(err, snapshot.ErrNotTogether) {
		t.Errorf("two hosts: %v", err)
	}
}

func TestSentCase(t *testing.T) {
	near := &host.Snapshot{Name: "near", OS: "linux"}
	c := evidence.Case{Near: near, Runs: []traffic.Result{*streamResult(nil)},
		Refused: map[evidence.Probe]string{evidence.ProbeMTU: "no time"}}
	var b bytes.Buffer
	if err := casefile.Write(&b, "v1", c); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	v, err := Sent(t.Context(), from(text), "-")
	if err != nil {
		t.Fatal(err)
	}
	if v.Stream() == nil || v.Limit().Code != diagnose.Judge(c)[0].Code {
		t.Errorf("judged again it is %s", v.Limit().Code)
	}
	file := filepath.Join(t.TempDir(), "case.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, names := range [][]string{{}, {file, file}, {file, report(t, "Mon Dec 25 12:00:00 UTC 2023", "web1", "3")},
		{"a", "b", "c"}} {
		if _, err := Sent(t.Context(), from(""), names...); !errors.Is(err, ErrSent) {
			t.Errorf("%v: %v", names, err)
		}
	}
	if _, err := Sent(t.Context(), from(text[:len(text)/2]), "-"); !errors.Is(err, casefile.ErrFormat) {
		t.Errorf("half a case: %v", err)
	}
	if _, err := Sent(t.Context(), from(""), t.TempDir()); !errors.Is(err, sosreport.ErrFormat) {
		t.Errorf("an empty directory: %v", err)
	}
}

// from opens files by their names, and a text as "-".
func from(text string) Source {
	return func(name string) (io.ReadCloser, error) {
		if name == "-" {
			return io.NopCloser(strings.NewReader(text)), nil
		}
		return os.Open(name)
	}
}
