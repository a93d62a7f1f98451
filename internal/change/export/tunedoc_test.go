package export

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/knob"
)

const tuned = `{"schema":"linerate.tune/1","linerate":"v0.1.0","time":"2026-11-20T12:00:00Z",` +
	`"host":{"name":"db1","os":"linux"},"target":"192.0.2.7",
"goal":"throughput","state":"committed","final":{"pairs":10,"effect_ratio":3.97},"kept":[
{"knob":"sysctl:net.core.rmem_max","side":"near","from":"1","to":"33554432","id":"0001"},` +
	`{"knob":"link:eth0/mtu","side":"far","from":"1500","to":"9000","id":"0007"}],
"trials":[{"knob":"sysctl:net.core.rmem_max","side":"near","pairs":6,"effect_ratio":2,"verdict":"kept","why":"x"},
{"knob":"link:eth0/mtu","side":"far","pairs":6,"effect_ratio":3,"verdict":"kept","together":true}]}`

// TestReadTune: each side gets its own changes; a change that was tried together with others has no
// proof of its own.
func TestReadTune(t *testing.T) {
	near, err := ReadTune([]byte(tuned), Near)
	if err != nil {
		t.Fatal(err)
	}
	want := []Change{{ID: "0001", Knob: "sysctl:net.core.rmem_max", From: "1", To: "33554432", State: "committed",
		Why: "x", Proof: &Effect{Ratio: 2, Pairs: 6}}}
	if diff := cmp.Diff(want, near.Changes); diff != "" {
		t.Errorf("near (-want +got):\n%s", diff)
	}
	if near.Origin.Host != "db1" || near.Proof.OtherEnd != 1 || near.Proof.Ratio != 3.97 {
		t.Errorf("near: %+v, %+v", near.Origin, near.Proof)
	}
	far, err := ReadTune([]byte(tuned), Far)
	if err != nil || len(far.Changes) != 1 || far.Changes[0].Proof != nil || far.Origin.Host != "192.0.2.7" ||
		far.Origin.OS != "" {
		t.Errorf("far: %+v, %v", far, err)
	}
	for _, c := range []struct {
		old, new string
		want     error
	}{
		{`"committed"`, `"undone"`, ErrNothing}, {`"near"`, `"far"`, ErrNothing},
		{"linerate.tune/1", "linerate.measure/1", ErrNotATune},
		{`{"schema"`, `{schema`, ErrNotATune}, {"33554432", "1; reboot", knob.ErrInvalid},
		{"net.core.rmem_max", "net.core.no_such", knob.ErrUnknown},
		{"sysctl:net.core.rmem_max", "sysctl:net.core../../x", knob.ErrUnknown},
	} {
		if _, err := ReadTune([]byte(strings.ReplaceAll(tuned, c.old, c.new)), Near); !errors.Is(err, c.want) {
			t.Errorf("%s → %s: %v, want %v", c.old, c.new, err, c.want)
		}
	}
}

// TestProve: a run proves the changes of the journal that have its ids and values. The effect of
// the whole run goes only to a set that has exactly its changes.
func TestProve(t *testing.T) {
	run, err := ReadTune([]byte(tuned), Near)
	if err != nil {
		t.Fatal(err)
	}
	same := Set{Changes: []Change{{ID: "0001", Knob: "sysctl:net.core.rmem_max", To: "33554432"}}}
	if !same.Prove(run, "r1") || same.Proof == nil || same.Proof.Run != "r1" || same.Changes[0].Proof == nil ||
		same.Changes[0].Why != "x" {
		t.Errorf("the same set: %+v", same)
	}
	more := Set{Changes: []Change{{ID: "0001", Knob: "sysctl:net.core.rmem_max", To: "33554432"},
		{ID: "0002", Knob: "link:eth0/mtu", To: "9000"}}}
	if !more.Prove(run, "r1") || more.Proof != nil || more.Changes[0].Proof == nil || more.Changes[1].Proof != nil {
		t.Errorf("a larger set: %+v", more)
	}
	for _, other := range []Change{{ID: "0002", Knob: "sysctl:net.core.rmem_max", To: "33554432"},
		{ID: "0001", Knob: "sysctl:net.core.rmem_max", To: "1"},
		{ID: "", Knob: "sysctl:net.core.rmem_max", To: "33554432"}} {
		s := Set{Changes: []Change{other}}
		if s.Prove(run, "r1") || s.Proof != nil {
			t.Errorf("another change: %+v", s)
		}
	}
}

// FuzzReadTune: a document from anybody is a set that can be written, or an error.
func FuzzReadTune(f *testing.F) {
	f.Add(tuned)
	f.Add(`{"schema":"linerate.tune/1","state":"committed","kept":[` +
		`{"knob":"sysctl:net.ipv4.conf.$(id).rp_filter","side":"near","to":"1"}]}`)
	f.Fuzz(func(t *testing.T, doc string) {
		set, err := ReadTune([]byte(doc), Near)
		if err != nil {
			return
		}
		for _, format := range Formats() {
			if _, err := Write(format, set); err != nil && !errors.Is(err, ErrNothing) {
				t.Fatal(err)
			}
		}
	})
}
