package apply_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/firewall/apply"
	"github.com/linerate/linerate/internal/firewall/equal"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/rewrite"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// inNamespace runs a test in a network namespace of its own, on a thread that ends with it.
func inNamespace(t *testing.T, f func()) {
	t.Helper()
	testenv.Need(t, testenv.NetNS, testenv.Peers)
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			f() // may end this goroutine by t.FailNow
		}
	}()
	<-done
	if err != nil {
		testenv.Missing(t, testenv.NetNS, err)
	}
	if t.Failed() {
		t.FailNow()
	}
}

func nft(t *testing.T, text string) {
	t.Helper()
	c := exec.Command("nft", "-f", "-")
	c.Stdin = strings.NewReader(text)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("nft: %v: %s", err, out)
	}
}

func listed(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("nft", "list", "ruleset").CombinedOutput()
	if err != nil {
		t.Fatalf("nft: %v: %s", err, out)
	}
	return string(out)
}

func live(t *testing.T) *ruleset.Ruleset {
	t.Helper()
	out, err := exec.Command("nft", "-j", "list", "ruleset").Output()
	if err != nil {
		t.Fatal(err)
	}
	r, err := read.NFT(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// houses is a router that counts what each house sends and receives, and drops some.
func houses(n int) string {
	var b strings.Builder
	b.WriteString("table inet filter {\n\tset seen { type ipv4_addr; flags dynamic,timeout; timeout 1h; }\n" +
		"\tcounter total { packets 0 bytes 0; }\n" +
		"\tchain forward {\n\t\ttype filter hook forward priority filter; policy drop;\n" +
		"\t\tct state invalid drop\n\t\tcounter name \"total\"\n")
	for i := range n {
		fmt.Fprintf(&b, "\t\tip saddr 10.0.%d.%d counter packets %d bytes %d comment \"house %d\"\n", i/256, i%256, i,
			100*i, i)
		fmt.Fprintf(&b, "\t\tip daddr 10.0.%d.%d counter comment \"to house %d\"\n", i/256, i%256, i)
	}
	b.WriteString("\t\tip protocol tcp reject with icmp type admin-prohibited\n" +
		"\t\tudp dport { 53, 123, 9 } accept\n\t}\n" +
		"\tchain other { add @seen { ip saddr }; counter; }\n}\n")
	return b.String()
}

// planned optimises the only table of this namespace.
func planned(t *testing.T) *apply.Plan {
	t.Helper()
	before := live(t)
	got := rewrite.Optimise(before, equal.Usual())
	if len(got.Changed) == 0 || got.Proof.Answer != equal.Equal {
		t.Fatalf("nothing changes: %+v", got.Kept)
	}
	p, err := apply.Rehearse(context.Background(), before.Program, before.Tables[0], got.Rules.Tables[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestThereAndBack: without packets, the rules come back as they were, to the letter.
func TestThereAndBack(t *testing.T) {
	inNamespace(t, func() {
		nft(t, houses(40))
		before := listed(t)
		p := planned(t)
		b := &apply.Tables{Dir: t.TempDir()}
		if err := b.Add(p); err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		if v, err := b.Read(ctx, p.ID()); err != nil || v != p.From() {
			t.Fatalf("%s, %v", v, err)
		}
		if err := b.Write(ctx, p.ID(), p.To()); err != nil {
			t.Fatal(err)
		}
		if v, err := b.Read(ctx, p.ID()); err != nil || v != p.To() {
			t.Fatalf("%s, %v", v, err)
		}
		t.Log(listed(t))
		if err := b.Write(ctx, p.ID(), p.From()); err != nil {
			t.Fatal(err)
		}
		if after := listed(t); after != before {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
	})
}

func number(n uint64) string { return fmt.Sprint(n) }
