package advice

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzParse: whatever a text holds, every setting stands on a line of it, has a name and a verdict,
// and is UTF-8; and the same text gives the same settings again.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/writeups.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		f.Add([]byte(line)) // one at a time: the fuzzer spends its time on cutting long texts short
	}
	for _, seed := range []string{
		"", "\n", "=", "a=", "=a", ".=.", "net.ipv4. = 1", "net.ipv4.tcp_rmem = -1 x 99999999999999999999", "sysctl",
		"sysctl -w", "sysctl -w =",
		"ethtool -K", "ethtool -K eth0 tso", "ethtool -s eth0 speed", "ip", "ip link set", "ip link set dev",
		"ip route add", "route add window 4",
		"tc qdisc add dev eth0", "mii-tool -F", "mii-tool -F=100 eth0", "echo > /sys/class/net//", "echo 1 >",
		"echo | tee", "> x", "| |", "'", `"`, `\`,
		"mount -o", "ndd -set", "ipadm set-prop -p tcp", "dladm set-linkprop -p mtu", "netsh int tcp set",
		"netsh int tcp set heuristics disabled",
		"reg add X /v", "[HKLM]\n=\n@=1\n\"\"=dword:zz", "options", "options e1000 a",
		"options e1000 InterruptThrottleRate=,,", "MaxFrameSize=;",
		"set ip:x=1", "version \"", "ifconfig_em0=", "ETHTOOL_OPTS=", "MTU=", "x:/ /m nfs ,",
		"route add 1.2.3.4 netmask 255.0.255.0 window 9",
		"net/ipv4/conf/eth0.1/rp_filter = 1", "# # # sysctl -w net.ipv4.tcp_sack=0", "\xff\xfe[\x00", "\ufeff",
		"sudo sudo -n", "do do do",
		"| net.ipv4.tcp_sack | 0 |", "|Name|Default|Value|\n|-|-|-|\n|tcp_sack|1|0|", "||||\n|---|\n|=|",
		"net.ipv4.tcp_sack: 0", "- { name: net.ipv4.tcp_sack, value: '0' }", "name: net.ipv4.tcp_sack\nvalue: 0",
		"name: x.y\nname: x.z\nvalue:", `"net.ipv4.tcp_sack" = 0;`, "sysctl { 'net.ipv4.tcp_sack': value => '0' }",
		"sysctl 'net.ipv4.tcp_sack' do\n  value 0\nend", "<code>sysctl -w net.ipv4.tcp_sack=0</code><br>", "<td>a</td><td",
		"&lt;&#x;&#99999999999;&", "`net.ipv4.tcp_sack=0`, ``", "[sysctl]\nnet.ipv4.tcp_sack=${x}\n[net]\ncoalesce=",
		"ssh h 'sysctl -w net.ipv4.tcp_sack=0'", "ssh h ssh h ssh h", "powershell -Command \"",
		"ip netns exec x ip netns exec", "for f in /proc/sys/net/ipv4/*; do echo 1 > $f; done",
		`echo -e "a.b=1\n=\n"> x`, "(\necho a.b=1\n) > x", ") >",
		"echo [HKEY_LOCAL_MACHINE\\X] >> x\necho \"a\"=dword:>>x", "net.ipv4.tcp_sack=$(nproc)", "net.ipv4.tcp_sack={{ x }}",
		"echo ffffffff,ffffffff > /proc/irq/1/smp_affinity", "echo , > /proc/irq/1/smp_affinity", "[a@b] sysctl",
		"Set-NetAdapterAdvancedProperty * -Dis x", "net.inet.tcp.sack=0 # OpenBSD", "netsh int ipv4 set sub",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Parse(data)
		if err != nil {
			return
		}
		all := Target{}.Judge(a)
		if len(all) != len(a.Settings)+len(a.Unread) {
			t.Fatalf("%d judgements of %d settings and %d other lines", len(all), len(a.Settings), len(a.Unread))
		}
		for i, j := range all {
			switch {
			case j.Line < 1 || j.Line > a.Lines || i > 0 && j.Line < all[i-1].Line:
				t.Fatalf("line %d of %d", j.Line, a.Lines)
			case j.Verdict.Rank() < 0 || j.Why == "" || j.For == "":
				t.Fatalf("no judgement: %+v", j)
			case j.Verdict != Unknown && j.Source == "":
				t.Fatalf("no source: %+v", j)
			case !utf8.ValidString(j.Text + j.Knob + j.Value):
				t.Fatalf("no UTF-8: %+v", j)
			case strings.ContainsAny(j.Value, "\n\t"):
				t.Fatalf("value %q", j.Value)
			}
		}
	})
}

// FuzzRelease: a release is read or refused, and is not older than itself.
func FuzzRelease(f *testing.F) {
	for _, seed := range []string{"6.18.44-generic", "2.6.13", "5.11", "xp", "2008r2", "", "x", "1..2",
		"99999999999999999999.1", "14.1-RELEASE-p3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, o := range Systems() {
			r, err := ParseRelease(o, s)
			if err == nil && (len(r) == 0 || r.before(r)) {
				t.Fatalf("%q of %s is %v", s, o, r)
			}
		}
	})
}

// FuzzWords: no command is empty, and no word holds a line end.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{"a b", `a "b c" 'd'`, "a|b||c&&d;e&", "a 2>&1 >f", `reg add HKLM\A\b`, "a#b #c", `"`,
		"> > x", "echo a>b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, c := range splitCommands(s) {
			if len(c.words) == 0 || len(c.unwrap().words) == 0 {
				t.Fatalf("empty command in %q", s)
			}
		}
	})
}
