package advice

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// An unknown name is compared with all facts and with all names of the kernel: a long text of
// nothing else still has its answer in time.
func TestCostOfUnknownNames(t *testing.T) {
	for name, form := range map[string]string{
		"names":      "net.ipv4.tcp_wrong_name_number_N = 1\n",
		"interfaces": "net.ipv4.conf.ethN.rp_filterr = 1\n",
		"long":       "net.ipv4." + strings.Repeat("tcp_", 25) + "N = 1\n",
		"registry":   `reg add HKLM\System\CurrentControlSet\Services\Afd\Parameters /v WrongN /d 1` + "\n",
		"sentences":  "the value of tcp_wrong_N should be set to 1 for tcp_rmem and net.ipv4.tcp_wmem\n",
	} {
		var b strings.Builder
		for i := 0; b.Len() < MaxBytes/4; i++ {
			b.WriteString(strings.ReplaceAll(form, "N", strconv.Itoa(i)))
		}
		start := time.Now()
		a, err := Parse([]byte(b.String()))
		if err != nil {
			t.Error(name, err)
			continue
		}
		Target{}.Judge(a)
		took := time.Since(start)
		t.Log(name, len(a.Settings), "settings", took)
		// It takes half a second; a reader that is quadratic in something takes many minutes.
		if took > time.Minute {
			t.Errorf("%s: %s", name, took)
		}
	}
}
