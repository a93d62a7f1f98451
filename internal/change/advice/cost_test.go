package advice

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// TestCostOfUnknownNames: an unknown name is compared with all facts and with all names of the
// kernel, so the time for a long text of nothing else must grow no faster than the text. The test
// compares CPU time, which a busy machine does not change.
func TestCostOfUnknownNames(t *testing.T) {
	testenv.Need(t, testenv.Long)
	const few, many = MaxBytes / 16, MaxBytes / 4
	for name, form := range map[string]string{
		"names":      "net.ipv4.tcp_wrong_name_number_N = 1\n",
		"interfaces": "net.ipv4.conf.ethN.rp_filterr = 1\n",
		"long":       "net.ipv4." + strings.Repeat("tcp_", 25) + "N = 1\n",
		"registry":   `reg add HKLM\System\CurrentControlSet\Services\Afd\Parameters /v WrongN /d 1` + "\n",
		"literals":   `Set(@"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters", "MaxUserPort", N, '\'\'); `,
		"tables":     `{ { "DefaultTTL": N, "name": "MaxUserPort", "value": N }, [ "reg add HKLM", "` + "\n",
		"variables": `$aN = "$aN$(x"; foreach ($k in $aN, 1) { Set-ItemProperty -Path "HKLM:\A\$aN" ` +
			"-Name N -Value $k }\n",
		"functions": "function fN($a, $b) { fN $a; f1 $b N; Set-ItemProperty -Path HKLM:\\A -Name $a -Value $b }\nfN 1 N\n",
		"brackets":  "$a = @{ N = { ( [ \"$( @\" ' <# $_; foreach ($x in $a.Keys) { netsh int tcp set global $x\n",
		"sentences": "the value of tcp_wrong_N should be set to 1 for tcp_rmem and net.ipv4.tcp_wmem\n",
	} {
		judge := func(bytes int) time.Duration {
			var b strings.Builder
			for i := 0; b.Len() < bytes; i++ {
				b.WriteString(strings.ReplaceAll(form, "N", strconv.Itoa(i)))
			}
			before := cpuTime()
			a, err := Parse([]byte(b.String()))
			if err != nil {
				t.Error(name, err)
				return 0
			}
			Target{}.Judge(a)
			return cpuTime() - before
		}
		// Four times the text takes about four times as long, and sixteen times where a reader is
		// quadratic in something. A host that stops this machine meanwhile can only add to it, so the
		// least of three counts, and the first that is small enough is enough.
		small, large := judge(few), judge(many)
		bound := 8*small + time.Second
		for range 2 {
			if large > bound {
				large = min(large, judge(many))
			}
		}
		t.Logf("%s: %v for %d bytes, %v for %d", name, small, few, large, many)
		if large > bound {
			t.Errorf("%s: %v for %d bytes, %v for %d", name, small, few, large, many)
		}
	}
}

// cpuTime is what this process has used so far.
func cpuTime() time.Duration {
	user, system := sys.ProcessTimes()
	return user + system
}
