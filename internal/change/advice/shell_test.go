package advice

import (
	"fmt"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

// TestShell: what a text says about its own variables, loops and functions is written out, and what
// it leaves open keeps its name.
func TestShell(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"variable", "IF=eth0\nethtool -K $IF gro off", []string{"ethtool:eth0/feature.rx-gro = off: harmful"}},
		{"part of a variable", "for o in gro; do ethtool -K ${dev:0:-1} $o off; done",
			[]string{"ethtool:${dev}/feature.rx-gro = off: harmful"}},
		{"variable with a default", "ethtool -K ${IF:-eth0} tso off",
			[]string{"ethtool:${IF}/feature.tx-tcp-segmentation = off: harmful"}},
		{"path of variables", "F=\"/sys/class/net/${IF}/queues/tx-${i}/xps_cpus\"\necho \"$M\" > \"$F\"",
			[]string{"queue:${IF}/tx-${i}/xps_cpus = $M: unknown"}},
		{"command behind #", "sysctl -w net.ipv4.tcp_sack=0\n#sysctl -w net.ipv4.tcp_dsack=0",
			[]string{"net.ipv4.tcp_sack = 0: harmful"}},
		{"prompt", "#sysctl -w net.ipv4.tcp_sack=0", []string{"net.ipv4.tcp_sack = 0: harmful"}},
		{"two values", "V=0\nV=1\nsysctl -w net.ipv4.tcp_sack=$V", []string{"net.ipv4.tcp_sack = $V: unknown"}},
		{"value from elsewhere", "V=0\nread V\nsysctl -w net.ipv4.tcp_sack=$V", []string{"net.ipv4.tcp_sack = $V: unknown"}},
		{"value of a default", "V=${1:-0}\nsysctl -w net.ipv4.tcp_sack=$V", []string{"net.ipv4.tcp_sack = $V: unknown"}},
		{"second assignment in one line", "local a=1 V=1\nV=0\nsysctl -w net.ipv4.tcp_sack=$V",
			[]string{"net.ipv4.tcp_sack = $V: unknown"}},
		{"refers to itself", "A=$B\nB=$A\nsysctl -w net.ipv4.tcp_sack=$A", []string{"net.ipv4.tcp_sack = $A: unknown"}},
		{"batch", "set V=disabled\nnetsh int tcp set global rss=%V%", []string{"netsh:tcp/rss = disabled: harmful"}},
		{"PowerShell", "$p = 'HKLM:\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters'\n" +
			"Set-ItemProperty -Path $p -Name 'TcpTimedWaitDelay' -Value 30",
			[]string{`registry:HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\TcpTimedWaitDelay = 30: still-right`}},
		{"loop", "for i in eth0 eth1; do\n ethtool -K $i gro off\ndone", []string{
			"ethtool:eth0/feature.rx-gro = off: harmful", "ethtool:eth1/feature.rx-gro = off: harmful"}},
		{"loop of one line", "for n in tcp_sack tcp_timestamps; do echo 0 > /proc/sys/net/ipv4/$n; done", []string{
			"net.ipv4.tcp_sack = 0: harmful", "net.ipv4.tcp_timestamps = 0: harmful"}},
		{"loops within each other", "for a in 4 6; do for n in forwarding; do sysctl -w net.ipv$a.conf.all.$n=1; done; done",
			[]string{"net.ipv4.conf.all.forwarding = 1: still-right", "net.ipv6.conf.all.forwarding = 1: still-right"}},
		{"loop over something else", "for i in $(ls /sys/class/net); do\n ethtool -K $i gro off\ndone",
			[]string{"ethtool:$i/feature.rx-gro = off: harmful"}},
		{"behind a loop", "for i in eth0; do\n:\ndone\nethtool -K $i gro off", []string{
			"ethtool:$i/feature.rx-gro = off: harmful"}},
		{"braces", "for i in /proc/sys/net/ipv4/conf/*/{rp_filter,log_martians}; do\n echo 0 > $i\ndone", []string{
			"net.ipv4.conf.*.rp_filter = 0: now-default", "net.ipv4.conf.*.log_martians = 0: now-default"}},
		{"function", "put() {\n  local n=\"$1\"\n  echo \"$2\" > /proc/sys/net/ipv4/$n\n}\nput tcp_sack 0",
			[]string{"net.ipv4.tcp_sack = 0: harmful"}},
		{"function of two places",
			"put() { echo \"$1 = $2\" >> /etc/sysctl.conf; sysctl -w $1=$2; }\nput net.ipv4.tcp_sack 0",
			[]string{"net.ipv4.tcp_sack = 0: harmful"}},
		{"function of an interface", "tune() {\n ethtool -K \"$1\" gro off\n}\ntune $IF", []string{
			"ethtool:$IF/feature.rx-gro = off: harmful"}},
		{"function with unknown arguments", "put() {\n sysctl -w $1=$2\n}\nput $A $B", []string{": unknown"}},
		{"function that is not called", "put() {\n sysctl -w $1=$2\n}", []string{"$1 = $2: unknown"}},
		{"function that calls itself", "f() {\n f $1\n sysctl -w net.ipv4.tcp_sack=$1\n}\nf 0", []string{
			"net.ipv4.tcp_sack = 0: harmful"}},
		{"name in quotes", `set_sysctl "net.ipv4.tcp_sack" 0`, []string{"net.ipv4.tcp_sack = 0: harmful"}},
		{"shell in a container", `$run box sh -c 'for i in eth0; do ethtool -K "$i" gro off; done'`, []string{
			"ethtool:eth0/feature.rx-gro = off: harmful"}},
		{"directory in a variable", "d=$1\necho 0 > $d/tcp_sack", []string{": unknown"}},
		{"arithmetic", "ethtool -L eth0 combined $((CPUS < q ? CPUS : q))", []string{
			"ethtool:eth0/channels.combined = $((CPUS < q ? CPUS : q)): unknown"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, j := range judged(t, Target{Release: release(t, Linux, "6.18")}, c.text) {
				line := strings.TrimPrefix(j.Knob, "sysctl:") + " = " + j.Value
				if j.Knob == "" {
					line = ""
				}
				got = append(got, line+": "+string(j.Verdict))
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%q:\n%q, want\n%q", c.text, got, c.want)
			}
		})
	}
}

// TestShellOfHostileTexts: what loops and functions can become is bounded, in lines and in bytes.
func TestShellOfHostileTexts(t *testing.T) {
	testenv.Need(t, testenv.Long)
	const lines = 500
	for name, text := range map[string]string{
		"nested loops": strings.Repeat("for i in a b c d e f g h; do\n", 40) +
			strings.Repeat("sysctl -w net.ipv4.x=$i\n", lines),
		"loops of one line": "for i in 1 2 3 4 5 6 7 8; do " +
			strings.Repeat("echo $i; for j in $i 1 2 3 4; do echo $j; ", 200) +
			strings.Repeat("done; ", 201),
		"functions":      "f() {\n" + strings.Repeat("f $1; sysctl -w a.b=$1\n", 50) + "}\n" + strings.Repeat("f 1\n", lines),
		"many functions": strings.Repeat("f() {\n sysctl -w $1=$2\n}\nf a b\n", 5000),
		"braces":         strings.Repeat("for i in {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}; do\n", lines),
		"many braces":    "for i in " + strings.Repeat("{a,b}", 400) + "; do\nsysctl -w net.ipv4.x=$i\ndone\n",
		"values":         "A=" + strings.Repeat("$A", 100) + "\n" + strings.Repeat("B=$A$A$A\n", lines),
		"openings":       strings.Repeat("$(", 25000) + "\n" + strings.Repeat("for i in a; do ", 5000),
	} {
		before := cpuTime()
		a, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(name, err)
		}
		if n := len(a.Settings); n > mostItems*lines*4 {
			t.Errorf("%s: %d settings", name, n)
		}
		t.Logf("%s: %v, %d settings", name, cpuTime()-before, len(a.Settings))
	}
}
