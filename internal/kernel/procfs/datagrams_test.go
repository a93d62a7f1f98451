package procfs

import (
	"errors"
	"net/netip"
	"testing"
)

// TestParseSocketTable reads lines of a running named 9.18 and its neighbours (Linux 6.18), and one
// of udp6 from proc_net(5)'s format.
func TestParseSocketTable(t *testing.T) {
	udp := "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref " +
		"pointer drops            \n" +
		" 4709: 0900007F:14B4 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4295281 2 " +
		"0000000039c3c9b7 0       \n" +
		"15846: 0200007F:0035 00000000:0000 07 00000000:00000A00 00:00000000 00000000     0        0 4299298 2 " +
		"00000000b7ac69cd 17       \n"
	all, err := ParseSocketTable([]byte(udp), false)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	want := BoundSocket{Local: netip.MustParseAddrPort("127.0.0.2:53"), Foreign: netip.MustParseAddrPort("0.0.0.0:0"),
		State: 7, Queued: 0xa00, Inode: 4299298, Drops: 17}
	if all[1] != want {
		t.Errorf("got %+v, want %+v", all[1], want)
	}
	tcp6 := "  sl  local_address                         remote_address                        st tx_queue rx_queue tr " +
		"tm->when retrnsmt   uid  timeout inode\n" +
		"   0: 0000000000000000FFFF00000100007F:0035 00000000000000000000000000000000:0000 0A 00000000:00000003 " +
		"00:00000000 00000000   105        0 22213 1 0000000000000000 100 0 0 10 0\n"
	all, err = ParseSocketTable([]byte(tcp6), false)
	if err != nil || len(all) != 1 || all[0].Local != netip.MustParseAddrPort("127.0.0.1:53") || all[0].State != 10 ||
		all[0].Queued != 3 || all[0].Drops != 0 {
		t.Errorf("got %+v, %v", all, err)
	}
	if big, ok := socketAddress("7F000001:0035", true); !ok || big != netip.MustParseAddrPort("127.0.0.1:53") {
		t.Errorf("big-endian: %v", big)
	}
	for _, bad := range []string{"x\n", "0: 1:1 2:2 07 0:0 0 0 0 0 5\n", udp[:len(udp)-9] + "x\n"} {
		if got, err := ParseSocketTable([]byte(bad), false); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

func TestParseUnixListeners(t *testing.T) {
	got := ParseUnixListeners([]byte("Num       RefCount Protocol Flags    Type St Inode Path\n" +
		"00000000dfe24ab6: 00000002 00000000 00010000 0001 01 4306851 /run/kresd/control/1 2\n" +
		"00000000dfe24ab7: 00000002 00000000 00000000 0001 03 4306852 /run/other\n" +
		"00000000dfe24ab8: 00000002 00000000 00010000 0001 01 4306853\n"))
	if len(got) != 1 || got[0].Inode != 4306851 || got[0].Path != "/run/kresd/control/1 2" {
		t.Errorf("got %+v", got)
	}
}

func TestParseSchedStat(t *testing.T) {
	run, wait, err := ParseSchedStat([]byte("60775211 819095652 809\n"))
	if err != nil || run != 60775211 || wait != 819095652 {
		t.Error(run, wait, err)
	}
	for _, bad := range []string{"", "1", "a b c"} {
		if _, _, err := ParseSchedStat([]byte(bad)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzParseSocketTable(f *testing.F) {
	f.Add([]byte("sl drops\n1: 0200007F:0035 00000000:0000 07 0:0 0:0 0 0 0 42 2 0 3\n"))
	f.Add([]byte("sl inode\n1: 0200007F:0035 00000000:0000 0A 0:0 0:0 0 0 0 42\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, _ := ParseSocketTable(b, false)
		for _, s := range all {
			if !s.Local.IsValid() || !s.Foreign.IsValid() {
				t.Errorf("%+v has no address", s)
			}
		}
		ParseUnixListeners(b)
	})
}
