package advice

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/knob"
)

var update = flag.Bool("update", false, "write the golden file instead of comparing it")

// judged parses and judges a text for Linux 6.18 and the newest of the others.
func judged(t *testing.T, target Target, text string) []Judgement {
	t.Helper()
	a, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return target.Judge(a)
}

func release(t *testing.T, o OS, s string) map[OS]Release {
	t.Helper()
	r, err := ParseRelease(o, s)
	if err != nil {
		t.Fatal(err)
	}
	return map[OS]Release{o: r}
}

// short is what the tables below compare: knob = value, and the verdict.
func short(all []Judgement) []string {
	var out []string
	for _, j := range all {
		out = append(out, strings.TrimSuffix(strings.TrimPrefix(j.Knob, "sysctl:")+" = "+j.Value, " = ")+": "+
			string(j.Verdict))
	}
	return out
}

// TestWriteUps: every setting of the five write-ups is recognised and judged, on the kernel of 2025
// and the newest of the others.
func TestWriteUps(t *testing.T) {
	text, err := os.ReadFile("testdata/writeups.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := judged(t, Target{Release: release(t, Linux, "6.18.44")}, string(text))
	for _, j := range all {
		if j.Verdict == Unknown || j.Why == "" || j.Source == "" {
			t.Errorf("line %d, %q: %s, why %q, source %q", j.Line, j.Text, j.Verdict, j.Why, j.Source)
		}
	}
	if *update {
		if err := os.WriteFile("testdata/writeups.golden", []byte(strings.Join(short(all), "\n")+"\n"),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/writeups.golden")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(string(want)), "\n"), short(all)); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

// TestHistory: the same line gets another verdict on another release.
func TestHistory(t *testing.T) {
	for _, c := range []struct {
		os      OS
		release string
		text    string
		want    Verdict
	}{
		{Linux, "4.11", "net.ipv4.tcp_tw_recycle = 1", Harmful},
		{Linux, "4.12", "net.ipv4.tcp_tw_recycle = 1", Removed},
		{Linux, "4.13", "net.ipv4.tcp_low_latency = 1", StillRight},
		{Linux, "4.14", "net.ipv4.tcp_low_latency = 1", Ignored},
		{Linux, "4.14", "net.ipv4.tcp_fack = 1", NowDefault},
		{Linux, "6.1", "net.ipv4.tcp_fack = 1", Ignored},
		{Linux, "2.6.18", "net.ipv4.tcp_rmem = 4096 87380 4194304", NowDefault},
		{Linux, "2.6.18", "net.ipv4.tcp_rmem = 4096 87380 6291456", StillRight},
		{Linux, "6.1", "net.ipv4.tcp_rmem = 4096 131072 6291456", NowDefault},
		{Linux, "6.15", "net.ipv4.tcp_rmem = 4096 87380 16777216", StillRight},
		{Linux, "6.16", "net.ipv4.tcp_rmem = 4096 87380 16777216", Harmful},
		{Linux, "6.18", "net.ipv4.tcp_rmem = 4096 87380 67108864", StillRight},
		{Linux, "6.17", "net.core.rmem_max = 4194304", StillRight},
		{Linux, "6.18", "net.core.rmem_max = 4194304", NowDefault},
		{Linux, "6.18", "net.core.rmem_max = 1048576", Harmful},
		{Linux, "6.17", "net.core.rmem_max = 131071", Harmful},
		{Linux, "6.15", "net.ipv4.tcp_limit_output_bytes = 1048576", NowDefault},
		{Linux, "6.16", "net.ipv4.tcp_limit_output_bytes = 1048576", Harmful},
		{Linux, "4.10", "net.ipv4.tcp_early_retrans = 1", StillRight},
		{Linux, "4.11", "net.ipv4.tcp_early_retrans = 1", Harmful},
		{Linux, "5.12", "kernel.sched_latency_ns = 24000000", Unknown},
		{Linux, "5.13", "kernel.sched_latency_ns = 24000000", Removed},
		{Linux, "6.2", "net.ipv6.route.max_size = 16384", StillRight},
		{Linux, "6.3", "net.ipv6.route.max_size = 16384", Ignored},
		{Linux, "5.19", "net.netfilter.nf_conntrack_helper = 1", Harmful},
		{Linux, "6.0", "net.netfilter.nf_conntrack_helper = 1", Removed},
		{Linux, "5.3", "net.core.somaxconn = 1024", StillRight},
		{Linux, "5.4", "net.core.somaxconn = 1024", Harmful},
		{Linux, "5.5", "net.ipv4.tcp_no_metrics_save = 1", StillRight},
		{Linux, "5.6", "net.ipv4.tcp_no_metrics_save = 1", NowDefault},
		{Linux, "6.5", "net.ipv4.tcp_adv_win_scale = 2", StillRight},
		{Linux, "6.6", "net.ipv4.tcp_adv_win_scale = 2", Ignored},
		{FreeBSD, "8.4", "net.inet.tcp.inflight.enable=1", Harmful},
		{FreeBSD, "9.0", "net.inet.tcp.inflight.enable=1", Removed},
		{FreeBSD, "11.4-RELEASE", "options DEVICE_POLLING", StillRight},
		{FreeBSD, "14.1", "options DEVICE_POLLING", Ignored},
		{Windows, "xp", "TcpWindowSize 131400", StillRight},
		{Windows, "10", "TcpWindowSize 131400", Ignored},
		{Windows, "2003", "Tcp1323Opts 3", StillRight},
		{Windows, "11", "Tcp1323Opts 3", NowDefault},
		{Solaris, "10", "ndd -set /dev/tcp tcp_recv_hiwat 65536", StillRight},
		{Solaris, "5.11", "ndd -set /dev/tcp tcp_recv_hiwat 65536", Harmful},
		{Illumos, "", "ndd -set /dev/tcp tcp_recv_hiwat 983040", StillRight},
	} {
		target := Target{OS: c.os}
		if c.release != "" {
			target.Release = release(t, c.os, c.release)
		}
		got := judged(t, target, c.text)
		if len(got) != 1 || got[0].Verdict != c.want {
			t.Errorf("%s %s, %q: %v, want %s", c.os, c.release, c.text, short(got), c.want)
		}
	}
}

// TestForms: each form of advice is recognised by its content, and gives the same setting as the
// plainest one.
func TestForms(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"sysctl.conf", "net.ipv4.tcp_sack=0", "net.ipv4.tcp_sack = 0: harmful"},
		{"slashes, may fail", "-net/ipv4/tcp_sack = 0", "net.ipv4.tcp_sack = 0: harmful"},
		{"comment behind", "net.ipv4.tcp_sack = 0  # faster", "net.ipv4.tcp_sack = 0: harmful"},
		{"command", "sudo /sbin/sysctl -q -w net.ipv4.tcp_sack=0", "net.ipv4.tcp_sack = 0: harmful"},
		{"prompt", "[root@web1 ~]# sysctl -w net.ipv4.tcp_sack=0", "net.ipv4.tcp_sack = 0: harmful"},
		{"echo", "echo 0 > /proc/sys/net/ipv4/tcp_sack", "net.ipv4.tcp_sack = 0: harmful"},
		{"tee", "echo 0 | sudo tee /proc/sys/net/ipv4/tcp_sack", "net.ipv4.tcp_sack = 0: harmful"},
		{"appended", `echo "net.ipv4.tcp_sack = 0" >> /etc/sysctl.conf`, "net.ipv4.tcp_sack = 0: harmful"},
		{"quotes", `sysctl -w 'net.ipv4.tcp_rmem=4096   87380	16777216'`,
			"net.ipv4.tcp_rmem = 4096 87380 16777216: harmful"},
		{"continued", "sysctl -w \\\n net.ipv4.tcp_sack=0", "net.ipv4.tcp_sack = 0: harmful"},
		{"interface with a dot", "net/ipv4/conf/eth0.100/rp_filter=1",
			"net.ipv4.conf.eth0/100.rp_filter = 1: still-right"},
		{"out of range", "net.ipv4.tcp_mtu_probing = 7", "net.ipv4.tcp_mtu_probing = 7: ignored"},
		{"modprobe.d", "options e1000 RxIntDelay=64", "module:e1000/RxIntDelay = 64: harmful"},
		{"one card of several", "options e1000 InterruptThrottleRate=3,100000",
			"module:e1000/InterruptThrottleRate = 3,100000: harmful"},
		{"parameter out of range", "options e1000 InterruptThrottleRate=50",
			"module:e1000/InterruptThrottleRate = 50: ignored"},
		{"insmod", "insmod ./e1000.ko XsumRX=0", "module:e1000/XsumRX = 0: harmful"},
		{"forced gigabit", "ethtool -s eth0 speed 1000 duplex full autoneg off",
			"ethtool:eth0/link.forced = 1000/full: harmful"},
		{"offloads in a loop", "for i in $(ls); do ethtool -K $i tso off; done",
			"ethtool:$i/feature.tx-tcp-segmentation = off: harmful"},
		{"ring", "ethtool -G eth0 rx 4096", "ethtool:eth0/ring.rx = 4096: still-right"},
		{"pause", "ethtool -A eth0 rx off", "ethtool:eth0/pause.rx = off: still-right"},
		{"channels", "ethtool -L eth0 combined 4", "ethtool:eth0/channels.combined = 4: still-right"},
		{"ifcfg", `ETHTOOL_OPTS="speed 100 duplex full autoneg off"`, "ethtool:*/link.forced = 100/full: harmful"},
		{"mii-tool", "mii-tool -F 100baseTx-FD eth0", "ethtool:eth0/link.forced = 100/full: harmful"},
		{"txqueuelen", "ifconfig eth0 txqueuelen 10000", "link:eth0/txqueuelen = 10000: ignored"},
		{"qlen", "ip link set dev eth0 txqueuelen 1000", "link:eth0/txqueuelen = 1000: now-default"},
		{"mtu", "/sbin/ifconfig eth0 10.0.0.1 mtu 9000 up", "link:eth0/mtu = 9000: still-right"},
		{"route", "route add -net 10.0.0.0 netmask 255.0.0.0 gw 10.0.0.1 window 4096",
			"route:10.0.0.0/8/window = 4096: harmful"},
		{"ip route", "ip route change default via 10.0.0.1 initcwnd 10", "route:default/initcwnd = 10: now-default"},
		{"tc", "tc qdisc replace dev eth0 root pfifo limit 1000", "qdisc:eth0/root = pfifo: harmful"},
		{"rps", "echo f > /sys/class/net/eth0/queues/rx-0/rps_cpus", "queue:eth0/rx-0/rps_cpus = f: still-right"},
		{"irq", "echo 2 > /proc/irq/45/smp_affinity", "irq:45/affinity = 1: still-right"},
		{"irqs", "echo 000000f1 > /proc/irq/45/smp_affinity", "irq:45/affinity = 0,4-7: still-right"},
		{"irq list", "echo 2 > /proc/irq/45/smp_affinity_list", "irq:45/affinity = 2: still-right"},
		{"prompt without its sign", "[root@web1 ~] sysctl -w net.ipv4.tcp_sack=0", "net.ipv4.tcp_sack = 0: harmful"},
		{"group", "(\necho net.ipv4.tcp_sack=0\n) > /etc/sysctl.d/9.conf", "net.ipv4.tcp_sack = 0: harmful"},
		{"fstab", "nas:/data /mnt nfs rw,rsize=8192 0 0", "nfs:/mnt/rsize = 8192: harmful"},
		{"loader.conf", `kern.ipc.nmbclusters="32768"`, "kern.ipc.nmbclusters = 32768: harmful"},
		{"rc.conf", `ifconfig_em0="inet 10.0.0.1 netmask 255.0.0.0 polling"`, "ifconfig:em0/polling = on: ignored"},
		{"kernel configuration", "options \tHZ=2000 # for polling", "option:HZ = 2000: harmful"},
		{"/etc/system", "set ip:ip_squeue_fanout=1", "system:ip/ip_squeue_fanout = 1: still-right"},
		{"ipadm", "ipadm set-prop -t -p max_buf=2097152 tcp", "ipadm:tcp/max_buf = 2097152: still-right"},
		{".reg", "Windows Registry Editor Version 5.00\n\n" +
			"[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters]\n" +
			"\"TcpWindowSize\"=dword:0003ebc0\n; a comment",
			`registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\TcpWindowSize = 256960: ignored`},
		{"reg add", `reg add "HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters" ` +
			`/v EnableTCPChimney /t REG_DWORD /d 0x1 /f`,
			`registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\EnableTCPChimney = 1: ignored`},
		{"netsh", `C:\>netsh int tcp set global autotuninglevel=disabled`,
			"netsh:tcp/autotuninglevel = disabled: harmful"},
		{"placeholders", "route add <net> ... window <bytes>", "route:net/window = bytes: harmful"},
		{"same by another name", "net.nf_conntrack_max = 1048576", "net.nf_conntrack_max = 1048576: still-right"},
		{"not of the network", "kernel.sysrq = 0", "kernel.sysrq = 0: unknown"},
		{"value of no kind", "ifconfig em0 mtu large", "link:em0/mtu = large: ignored"},
		{"value of no kind elsewhere", "ifconfig e1000g0 mtu large", "link:e1000g0/mtu = large: unknown"},
		{"bytes for pages", "net.ipv4.tcp_mem = 4096 87380 4194304", "net.ipv4.tcp_mem = 4096 87380 4194304: harmful"},
		{"not a setting of ours", "net.ipv4.no_such_thing = 1", "net.ipv4.no_such_thing = 1: ignored"},
		{"of no form", "vendor_turbo=yes", ": unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := judged(t, Target{Release: release(t, Linux, "6.18")}, c.text+"\n")
			if diff := cmp.Diff([]string{c.want}, short(got)); diff != "" {
				t.Errorf("%q (-want +got):\n%s", c.text, diff)
			}
		})
	}
}

// TestNothing: what only reads, comments and sentences are no settings.
func TestNothing(t *testing.T) {
	for _, text := range []string{
		"", "\n\n", "# net.ipv4.tcp_sack = 0", "; net.ipv4.tcp_sack = 0",
		"#!/bin/sh\n# sysctl -w net.ipv4.tcp_sack=0\n",
		"ethtool -k eth0", "ethtool -S eth0 | grep drop", "sysctl -p", "sysctl net.ipv4.tcp_sack", "ip route show",
		"tc -s qdisc show dev eth0",
		"ndd -get /dev/tcp tcp_max_buf", "echo done", "echo done > /tmp/log", "The default window is 64 KiB.",
		"modprobe e1000", "tee",
		"[Unit]", "mii-tool x -F", "mii-tool -F", "ethtool -s eth0", "ip link set", "reg add X /v",
		"dladm show-linkprop -p mtu e1000g1", "netsh int tcp show global", "reg query HKLM", "mount", "route -n",
		"ifconfig eth0 up",
	} {
		a, err := Parse([]byte(text))
		if err != nil || len(a.Settings)+len(a.Unread) > 0 {
			t.Errorf("%q: %+v, %v", text, a, err)
		}
	}
}

// TestLines: a line is counted where it begins, also behind lines that go on, and settings of one
// line share it.
func TestLines(t *testing.T) {
	a, err := Parse([]byte(
		"\r\n# c\r\nsysctl -w \\\r\n  net.ipv4.tcp_sack=1 \\\r\n  net.ipv4.tcp_dsack=1\r\nnet.core.somaxconn = 9"))
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, s := range a.Settings {
		got = append(got, s.Line)
	}
	if diff := cmp.Diff([]int{3, 3, 6}, got); diff != "" || a.Lines != 6 {
		t.Errorf("lines %v of %d:\n%s", got, a.Lines, diff)
	}
}

// TestAsked: a system that was requested makes foreign settings ignored, and names their
// counterpart; lines that any system could have are judged for it.
func TestAsked(t *testing.T) {
	got := judged(t, Target{OS: Linux}, "ndd -set /dev/tcp tcp_max_buf 4194304\nifconfig eth0 mtu 9000\n")
	if diff := cmp.Diff([]string{"ndd:tcp/tcp_max_buf = 4194304: ignored", "link:eth0/mtu = 9000: still-right"},
		short(got)); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(got[0].Today, "net.core.rmem_max") {
		t.Errorf("counterpart %q", got[0].Today)
	}
	if got := judged(t, Target{}, "kern.ipc.maxsockbuf=1\nifconfig em0 mtu 9000\n"); got[1].For != FreeBSD {
		t.Errorf("ifconfig among FreeBSD settings is judged for %s", got[1].For)
	}
}

// TestPresent: present values are read for Linux settings alone, and one that is not there is
// absent.
func TestPresent(t *testing.T) {
	backend := knob.NewMemory(map[knob.ID]knob.Value{"sysctl:net.ipv4.tcp_sack": "1"})
	got := judged(t, Target{Present: FromBackend(t.Context(), backend)},
		"net.ipv4.tcp_sack=0\nnet.ipv4.tcp_dsack=0\nTcpWindowSize 1\n")
	if got[0].Current != "1" || got[1].Current != "" || got[2].Current != "" {
		t.Errorf("present values %q, %q, %q", got[0].Current, got[1].Current, got[2].Current)
	}
}

// TestRange: a value that the kernel would refuse says what it takes.
func TestRange(t *testing.T) {
	got := judged(t, Target{}, "net.ipv4.ip_local_port_range = 1024 99999")
	if got[0].Verdict != Ignored || !strings.Contains(got[0].Why, "from 1 to 65535") {
		t.Errorf("%s: %s", got[0].Verdict, got[0].Why)
	}
}

// TestFacts: the facts parse, no rule hides the ones after it, and every knob has the name that
// package knob gives it.
func TestFacts(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range facts() {
		key := string(f.OS) + " " + f.Knob
		if seen[key] {
			t.Errorf("%s is given twice", key)
		}
		seen[key] = true
		for i, r := range f.Rules {
			last := i == len(f.Rules)-1
			if !last && !r.asksValue() && r.Since == "" && r.Before == "" {
				t.Errorf("%s: rule %d fits everything, and %d more follow", f.Knob, i, len(f.Rules)-1-i)
			}
			if strings.Contains(r.Why, "  ") || !strings.HasSuffix(r.Why, ".") {
				t.Errorf("%s: %q is no sentence", f.Knob, r.Why)
			}
		}
		if id, err := knob.ParseID(f.Knob); err == nil && string(id) != f.Knob &&
			!strings.HasPrefix(f.Knob, "registry:") {
			t.Errorf("%s is called %s", f.Knob, id)
		}
	}
}

// TestRefused: what is no text is said to be none.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		data string
		want error
	}{
		{"\x7fELF\x02\x01\x01\x00\x00", ErrNotText},
		{strings.Repeat("\x01\x02\xff\xfe", 100), ErrNotText},
		{strings.Repeat("#", MaxBytes+1), ErrTooLong},
	} {
		if _, err := Parse([]byte(c.data)); err != c.want {
			t.Errorf("%.20q: %v, want %v", c.data, err, c.want)
		}
	}
}

// TestLongLine: a line of very many settings costs what its settings cost, and not their number
// times its length.
func TestLongLine(t *testing.T) {
	a, err := Parse([]byte("options e1000 " + strings.Repeat("XsumRX=0 ", 1000)))
	if err != nil || len(a.Settings) != 1000 {
		t.Fatalf("%d settings, %v", len(a.Settings), err)
	}
	if n := len(a.Settings[999].Text); n > 500 {
		t.Errorf("each setting carries %d bytes of its line", n)
	}
}

// TestEncodings: regedit writes UTF-16, old pages Latin-1, word processors curly quotes.
func TestEncodings(t *testing.T) {
	utf16 := "\xff\xfe"
	for _, c := range "[HKEY_LOCAL_MACHINE\\X]\r\n\"EnableRSS\"=dword:00000000\r\n" {
		utf16 += string([]byte{byte(c), 0})
	}
	for text, want := range map[string]string{
		utf16:                               `registry:HKLM\X\EnableRSS = 0: harmful`,
		"# sch\xf6n\nnet.ipv4.tcp_sack=0\n": "net.ipv4.tcp_sack = 0: harmful",
		"sysctl -w net.core.rmem_max=“1048576”\n": "net.core.rmem_max = 1048576: harmful",
		"\ufeffnet.ipv4.tcp_sack=0":               "net.ipv4.tcp_sack = 0: harmful",
		"net.ipv4.tcp_sack\u00a0=\u00a00":         "net.ipv4.tcp_sack = 0: harmful",
	} {
		if diff := cmp.Diff([]string{want}, short(judged(t, Target{}, text))); diff != "" {
			t.Errorf("%q:\n%s", text, diff)
		}
	}
}
