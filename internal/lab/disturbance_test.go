package lab

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestDisturbance(t *testing.T) {
	// A minute on two CPUs, of which the scenario's own programs used half.
	after := usage{all: 120, idle: 60, programs: 60, own: 60}
	for _, c := range []struct {
		name   string
		change func(u *usage)
		want   string
	}{
		{"alone", func(*usage) {}, ""},
		{"a shell beside it", func(u *usage) { u.programs += 5 }, ""},
		{"one half-busy CPU", func(u *usage) { u.programs += 30 }, "used 0.5 of the 2 CPUs"},
		{"a full machine", func(u *usage) { u.programs += 60 }, "used 1.0 of the 2 CPUs"},
		{"another guest", func(u *usage) { u.stolen = 12 }, "took 10 % of the CPU time"},
		{"no time passed", func(u *usage) { *u = usage{} }, ""},
	} {
		u := after
		c.change(&u)
		if got := disturbance(usage{}, u, 2); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestStop: only a stop that TCP can see is reported.
func TestStop(t *testing.T) {
	for gap, want := range map[time.Duration]string{
		0: "", 100 * time.Millisecond: "", 1200 * time.Millisecond: "this machine stopped the programs for 1.2 s meanwhile",
	} {
		if got := stop(gap); got != want {
			t.Errorf("%v: %q, want %q", gap, got, want)
		}
	}
}

func TestParseProcess(t *testing.T) {
	p, ok := parseProcess([]byte("4711 (a) b (c) S 17 4711 4711 0 -1 4194560 1 2 3 4 150 50 700 100 20 0 1 0 99 0 0"))
	if !ok || p.parent != 17 || p.used != 10 {
		t.Errorf("%+v %v", p, ok)
	}
	for _, bad := range []string{"", "1 (x) S", "1 (x) S y 1 1 0 -1 0 0 0 0 0 1 1 1 1",
		"1 (x) S 1 1 1 0 -1 0 0 0 0 0 z 1 1 1"} {
		if _, ok := parseProcess([]byte(bad)); ok {
			t.Errorf("%q is read", bad)
		}
	}
	all := map[int]process{1: {0, 9}, 5: {1, 1}, 6: {5, 2}, 7: {6, 4}, 8: {1, 8}, 9: {10, 1}, 10: {9, 1}}
	if n := treeOf(5, all); n != 7 {
		t.Errorf("the tree used %v s, want 7", n)
	}
	if u, ok := readUsage(); ok && (u.all <= 0 || u.own > u.programs+1 || treeOf(os.Getpid(), readProcesses()) < u.own) {
		t.Errorf("this machine: %+v", u)
	}
}
