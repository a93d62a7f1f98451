package host_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/kernel/nl"
)

// tap makes a tap interface that lives as long as the descriptor.
func tap(name string) (fd int, err error) {
	fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return fd, err
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	return fd, unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
}

// TestNetnsLayers: a bridge over the ends of two veths, and a tap, as the kernel makes them, with a
// sysfs of this namespace and with that of another one. Both must give the same.
func TestNetnsLayers(t *testing.T) {
	for _, own := range []bool{true, false} {
		var s *host.Snapshot
		withTap := true
		flags := 0
		if own {
			flags = unix.CLONE_FS | unix.CLONE_NEWNS
		}
		inNamespace(t, flags, func() error {
			if own {
				if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
					return fmt.Errorf("private mounts: %w", err)
				}
				if err := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_RDONLY, ""); err != nil {
					return fmt.Errorf("mount sysfs: %w", err)
				}
			}
			client, err := nl.Dial()
			if err != nil {
				return err
			}
			defer client.Close()
			fd, err := tap("tap7")
			if errors.Is(err, fs.ErrNotExist) {
				withTap = false // A container without the device has no tap; the rest is worth its test.
			} else if err != nil {
				return fmt.Errorf("make tap: %w", err)
			}
			if fd >= 0 {
				defer unix.Close(fd)
			}
			err = errors.Join(client.AddLink("br7", "bridge"), client.AddVeth("wa7", "wb7", -1),
				client.AddVeth("va7", "vb7", -1),
				client.SetMaster("wa7", "br7"), client.SetMaster("va7", "br7"))
			if err != nil {
				return err
			}
			s, err = host.Root{}.Snapshot(t.Context())
			return err
		})
		got := make(map[string]host.Layers)
		for _, name := range []string{"lo", "br7", "wa7", "va7", "vb7", "tap7"} {
			if i, ok := s.Interface(name); ok {
				got[name] = i.Layers
				// Only sysfs has polling. Software is never asleep.
				if (i.NAPI != nil) != own || i.Asleep || i.Card != nil {
					t.Errorf("own sysfs %v: %s napi %+v asleep %v card %+v", own, name, i.NAPI, i.Asleep, i.Card)
				}
			}
		}
		above := []string{"br7"}
		want := map[string]host.Layers{
			"lo": {Kind: "loopback"}, "br7": {Kind: "bridge", Below: []string{"va7", "wa7"}},
			"wa7": {Kind: "veth", Peer: "wb7", Above: above}, "va7": {Kind: "veth", Peer: "vb7", Above: above},
			"vb7": {Kind: "veth", Peer: "va7"},
		}
		if withTap {
			want["tap7"] = host.Layers{Kind: "tun"}
			if own {
				want["tap7"] = host.Layers{Kind: "tap"} // Only sysfs distinguishes the two.
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("own sysfs %v (-want +got):\n%s", own, diff)
		}
		if !slices.ContainsFunc(s.Tables, func(table host.Table) bool { return table.Name == "tcp-sockets" }) {
			t.Errorf("tables %+v", s.Tables)
		}
	}
}

// TestLiveCards: every card of this machine says what it is and who serves it, and reading them
// twice gives the same.
func TestLiveCards(t *testing.T) {
	s, err := host.Root{}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := host.Root{}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range s.Interfaces {
		second, ok := again.Interface(i.Name)
		if i.Virtual || !ok {
			continue
		}
		if i.Kind != "physical" || len(i.Carriers) > 0 && i.Carriers[0] == i.Name {
			t.Errorf("%s: %+v", i.Name, i.Layers)
		}
		if diff := cmp.Diff(i.Card, second.Card); diff != "" || len(i.Interrupts) != len(second.Interrupts) {
			t.Errorf("%s read twice (-first +second):\n%s", i.Name, diff)
		}
	}
}
