package peer_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer"
)

const rssKey = knob.ID("ethtool:eth0/rss.key")

// TestReadsAreLimitedToTheCatalogue has a peer with the key ask a serve that runs as root for what
// only root may read. The backend of this far host would answer.
func TestReadsAreLimitedToTheCatalogue(t *testing.T) {
	t.Parallel()
	for _, tuning := range []bool{false, true} {
		secrets := knob.NewMemory(map[knob.ID]knob.Value{
			rmem:                               original,
			rssKey:                             "6d5a",
			"sysctl:net.ipv4.tcp_fastopen_key": "1-2-3-4",
			"sysctl:kernel.core_pattern":       "|/usr/lib/x",
			"sysctl:net.ipv6.conf.eth0.stable_secret": "2001:db8::1",
		})
		f := serve(t, func(o *peer.ServerOptions) {
			if o.Backend = secrets; !tuning {
				o.Tuning = nil
			}
		})
		c := f.connect(f.addr, peer.ConnectOptions{})
		for id := range secrets.Values() {
			v, err := c.Read(t.Context(), id)
			switch {
			case id == rmem:
				if err != nil || v != original {
					t.Errorf("%s: %q, %v", id, v, err)
				}
			case err == nil || v != "":
				t.Errorf("tuning %v: disclosed %s: %q", tuning, id, v)
			case id == rssKey && !errors.Is(err, fs.ErrPermission), id != rssKey && !errors.Is(err, knob.ErrUnknown):
				t.Errorf("%s: %v", id, err)
			}
		}
		// Other spellings of the same file.
		for _, id := range []knob.ID{"sysctl:net/ipv4/tcp_fastopen_key", "sysctl:kernel/core_pattern",
			"sysctl:net.ipv4.conf.//.core_pattern"} {
			if v, err := c.Read(t.Context(), id); err == nil || v != "" {
				t.Errorf("disclosed %s: %q", id, v)
			}
		}
	}
}

func TestSecretsAreNotSetFromAfar(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	c := f.connect(f.addr, peer.ConnectOptions{})
	_, err := c.Apply(t.Context(), "to know it", knob.Setting{Knob: rssKey, Value: "6d5a"})
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("set: %v", err)
	}
}

// TestHistoryKeepsSecrets reads the journal of a host whose administrator changed a secret.
func TestHistoryKeepsSecrets(t *testing.T) {
	t.Parallel()
	made := []journal.Change{
		{ID: "0001", Knob: rssKey, From: "aa", To: "bb", Asked: "cc", Original: "aa", Note: "found dd"},
		{ID: "0002", Knob: rmem, From: original, To: larger},
	}
	f := serve(t, func(o *peer.ServerOptions) {
		o.History = func() ([]journal.Change, error) { return made, nil }
	})
	got, err := f.connect(f.addr, peer.ConnectOptions{}).History(t.Context())
	if err != nil || len(got) != 2 || got[1].To != larger {
		t.Fatalf("got %+v, %v", got, err)
	}
	if c := got[0]; c.From != journal.Redacted || c.To != journal.Redacted || c.Asked != "" || c.Original != "" ||
		c.Note != "" {
		t.Errorf("disclosed %+v", c)
	}
}
