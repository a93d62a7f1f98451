package solaris

import (
	"errors"
	"slices"
	"testing"
)

func TestFields(t *testing.T) {
	for line, want := range map[string][]string{
		`net0:2\:8\:20\:4\:b9\:e2` + "\n": {"net0", "2:8:20:4:b9:e2"},
		`a\\b::c`:                         {`a\b`, "", "c"},
		"":                                {""},
	} {
		if got := Fields(line); !slices.Equal(got, want) {
			t.Errorf("%q: %q", line, got)
		}
	}
}

// The values are those of omniosorg/omnios-documentation and TritonDataCenter/smartos-docs, put
// into the parsable form of ipadm(8) and dladm(8).
func TestProperties(t *testing.T) {
	p, err := ParseProperty("rw:128000::128000:4096-1048576\n")
	if err != nil || p != (Property{true, "128000", "", "128000", "4096-1048576"}) {
		t.Errorf("%+v, %v", p, err)
	}
	for value, want := range map[string]bool{"4096": true, "1048576": true, "1048577": false, "4095": false, "x": false} {
		if p.Allows(value) != want {
			t.Errorf("%s: %v", value, !want)
		}
	}
	if p, err = ParseProperty("r-:1500:1500:1500-16362\n"); err != nil || p.Writable || p.Persistent != "" ||
		p.Current != "1500" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err = ParseProperty("rw:bi:bi:no,tx,rx,bi\n"); err != nil || !p.Allows("tx") || p.Allows("auto") {
		t.Errorf("%+v, %v", p, err)
	}
	for _, bad := range []string{"", "\n", "rw", "rw:1", "PROTO PROPERTY PERM CURRENT\ntcp send_buf rw 1\n",
		"rw:1:2:3:4:5:6",
		":1:2:3", "rw:1:2:3\nrw:1:2:3\n"} {
		if p, err := ParseProperty(bad); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %+v, %v", bad, p, err)
		}
	}
}

// Names of e1000g and igb as their sources register them.
func TestKstat(t *testing.T) {
	counts, err := ParseKstat("e1000g:0:mac:ifspeed\t1000000000\ne1000g:0:mac:fcs_errors\t3\ne1000g:0:mac:norcvbuf\t0\n" +
		"e1000g:0:statistics:Recv_Missed_Packets\t612\ne1000g:0:statistics:Rx Allocb Failure\t4\n" +
		"e1000g:0:statistics:XOFFs_Recvd\t9\ne1000g:0:statistics:class\tnet\ne1000g:0:statistics:crtime\t41.5\n" +
		"igb:1:statistics:recv_missed_packets\t7\ntcp:0:tcp:retransBytes\t88\n")
	if err != nil || counts["tcp:0:tcp:retransBytes"] != 88 {
		t.Fatalf("%v, %v", counts, err)
	}
	if c, ok := CardCounters(counts, "e1000g:0"); !ok || c != (Card{Missed: 612, NoBuffer: 4, CRC: 3, PauseIn: 9}) {
		t.Errorf("%+v, %v", c, ok)
	}
	if c, ok := CardCounters(counts, "igb:1"); !ok || c.Missed != 7 {
		t.Errorf("%+v, %v", c, ok)
	}
	if _, ok := CardCounters(counts, "bge:0"); ok {
		t.Error("a card that is not there has counters")
	}
	for _, bad := range []string{"", "kstat: no match\n", "a\t1\n"} {
		if _, err := ParseKstat(bad); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestConf(t *testing.T) {
	text := "# MaxFrameSize=9; of all\nname=\"e1000g\" parent=\"pci\";\nMaxFrameSize=0,1,\n\t3, 0;\nFlowControl=4,4;\n"
	for _, c := range []struct {
		property string
		instance int
		value    string
	}{{"MaxFrameSize", 0, "0"}, {"MaxFrameSize", 2, "3"}, {"MaxFrameSize", 3, "0"}, {"MaxFrameSize", 4, ""},
		{"FlowControl", 1, "4"}, {"Frame", 0, ""}, {"name", 0, ""}} {
		value, at, end, found := Conf(text, c.property, c.instance)
		if value != c.value || found != (c.value != "") || found && text[at:end] != value {
			t.Errorf("%s %d: %q %v", c.property, c.instance, value, found)
		}
	}
}

func FuzzParsers(f *testing.F) {
	f.Add("rw:128000::128000:4096-1048576")
	f.Add("a:0:b:c\t1\n")
	f.Add("# x\nA=1,2;\n")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := ParseProperty(text); err == nil {
			_ = p.Allows("1")
		}
		_, _ = ParseKstat(text)
		if value, at, end, found := Conf(text, "A", 1); found && text[at:end] != value {
			t.Errorf("%q at %d to %d", value, at, end)
		}
	})
}
