package traffictest

import (
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) { Main(m) }

// TestLeaksAreSeen leaves a goroutine and a descriptor behind for a moment.
func TestLeaksAreSeen(t *testing.T) {
	before := openDescriptors()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		_, _ = l.Accept()
	}()
	// The tests' own goroutine is ours as well; the leaking one has this function as its creator
	// and not as its caller.
	if left := leftovers(0); !strings.Contains(left, "TestLeaksAreSeen.func") {
		t.Errorf("left over: %q", left)
	}
	if after := descriptorsUpTo(before, 0); before > 0 && after != before+1 {
		t.Errorf("%d descriptors before, %d with one more", before, after)
	}
	_ = l.Close()
	<-accepted
	if after := descriptorsUpTo(before, patience); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func TestLogWaitsForSentences(t *testing.T) {
	var l Log
	go func() {
		for _, line := range []string{"a b", "b", "b a"} {
			l.Add(line)
		}
	}()
	if diff := cmp.Diff([]string{"a b", "b a"}, l.Await(t, 2, "a", "b")); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if got := l.String(); got != "a b\nb\nb a" {
		t.Errorf("all: %q", got)
	}
	if found := l.Find("c"); len(found) != 0 {
		t.Errorf("found %q", found)
	}
}

func TestProcessCutsLines(t *testing.T) {
	var p Process
	for _, part := range []string{"one\ntw", "o\n", "\nthr", "ee"} {
		_, _ = p.Write([]byte(part))
	}
	p.rest()
	if diff := cmp.Diff([]string{"one", "two", "", "three"}, p.Lines()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
