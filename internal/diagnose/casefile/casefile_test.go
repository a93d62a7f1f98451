package casefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

// private is a case with a value of every private kind.
func private() evidence.Case {
	near := &host.Snapshot{
		Name: "dbx.acme.example", Kernel: "4.18.0.305", BootID: "2f9b1c1e-5c1d-4c0e-9d0a-0123456789ab",
		Virtualization: "vm",
		Interfaces: []host.Interface{{Name: "enx525400123456", MAC: "52:54:00:12:34:56",
			Addresses: []string{"203.0.114.7/24"}, MTUBytes: 1500}},
		Routes:   []host.Route{{Destination: "203.0.114.0/24", Interface: "enx525400123456"}},
		Warnings: []string{"read dbx: /etc/secret of dbx.acme.example: permission denied"},
	}
	lost := 0.5
	run := traffic.Result{
		Test: traffic.Ping, LocalAddress: "203.0.114.7", RemoteAddress: "203.0.114.9", LossRatio: &lost,
		Bytes:    1<<60 + 1,
		Warnings: []string{"cpu 0 of dbx.acme.example was busy"},
	}
	run.Ends.Local = traffic.End{Host: "dbx.acme.example",
		Counters: map[string]uint64{"nic.enx525400123456.rx_bytes": 1<<63 + 7}}
	run.Ends.Remote = traffic.End{Host: "vm"}
	return evidence.Case{
		Near: near, Far: &host.Snapshot{Name: "vm", Virtualization: "vm"}, Runs: []traffic.Result{run},
		FarAddress: "203.0.114.9:7070",
		Probes:     map[evidence.Probe]traffic.Result{evidence.ProbeMTU: run},
		Refused:    map[evidence.Probe]string{evidence.ProbeUDP: "dbx.acme.example: refused by 203.0.114.9"},
		Watched:    []evidence.Span{{Side: "near", Host: near, Seconds: 3}},
	}
}

func TestWriteRemovesPrivateValues(t *testing.T) {
	c := private()
	before, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	// Each call of Write has keys of its own. With one key in 256 the third octet of an address
	// maps to itself; a value that Write does not replace appears every time.
	var b bytes.Buffer
	found := make(map[string]int)
	const writings = 5
	for range writings {
		b.Reset()
		if err := Write(&b, "v1", c); err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"dbx", "acme", "203.0.114", "52:54:00", "525400123456", "2f9b1c1e"} {
			if strings.Contains(b.String(), secret) {
				found[secret]++
			}
		}
	}
	for secret, times := range found {
		if times == writings {
			t.Errorf("the file still contains %q:\n%s", secret, b.String())
		}
	}
	for _, kept := range []string{`"kernel": "4.18.0.305"`, `"virtualization": "vm"`, `/24"`,
		`"schema": "linerate.case/1"`, "9223372036854775815", "1152921504606846977"} {
		if !strings.Contains(b.String(), kept) {
			t.Errorf("the file lacks %s:\n%s", kept, b.String())
		}
	}
	after, err := json.Marshal(c)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the caller's case was changed: %v", err)
	}
	got, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	// Equal values stay equal: the run still leaves from an address of the host over its own
	// interface.
	card := got.Near.Interfaces[0]
	if !strings.HasPrefix(card.Addresses[0], got.Runs[0].LocalAddress+"/") ||
		got.Near.Routes[0].Interface != card.Name || got.Runs[0].Ends.Local.Host != got.Near.Name {
		t.Errorf("values that were equal differ now: %+v", got)
	}
	if _, ok := got.Runs[0].Ends.Local.Counters["nic."+card.Name+".rx_bytes"]; !ok {
		t.Errorf("counters %v of card %s", got.Runs[0].Ends.Local.Counters, card.Name)
	}
}

func TestReadReturnsWhatWasWritten(t *testing.T) {
	rtt := stats.Latencies{Count: 20, Min: 0.1}
	c := evidence.Case{Near: &host.Snapshot{Name: "localhost"},
		Runs: []traffic.Result{{Test: traffic.RR, RTT: &rtt, TransactionsPerSec: 8003.6}}}
	var b bytes.Buffer
	if err := Write(&b, "v1", c); err != nil {
		t.Fatal(err)
	}
	got, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&c, got, cmpopts.IgnoreUnexported(evidence.Case{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
}

func TestReadRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "no JSON": "linerate capture 1\n",
		"another document": `{"schema":"linerate.diagnose/1","limit":"healthy"}`,
		"empty":            `{"schema":"linerate.case/1","case":{}}`,
		"broken":           `{"schema":"linerate.case/1","case":{"runs":7}}`,
		"cut off":          `{"schema":"linerate.case/1","case":{`,
	} {
		if _, err := Read(strings.NewReader(text)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	const limit = 1 << 10
	if _, err := read(endless{}, limit); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "larger") {
		t.Errorf("endless: %v", err)
	}
	whole := `{"schema":"linerate.case/1","case":{"runs":[{}]}}`
	whole += strings.Repeat(" ", limit-len(whole))
	if _, err := read(strings.NewReader(whole), limit); err != nil {
		t.Errorf("exactly the limit: %v", err)
	}
	if _, err := read(strings.NewReader(whole+" "), limit); !errors.Is(err, ErrFormat) {
		t.Errorf("one byte above the limit: %v", err)
	}
}

// endless is a file of blanks without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// FuzzRead checks that no input crashes Read, and that Write accepts every case that Read accepts.
func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, "v1", private()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"schema":"linerate.case/1","case":{"watched":[` +
		`{"side":"near","sockets":{"listeners":[{"local":"1.2.3.4:5"}]}}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		if err := Write(&bytes.Buffer{}, "v1", *c); err != nil {
			t.Error(err)
		}
	})
}
