package live

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
)

// TestHints checks which remedy an error gets where several could be meant.
func TestHints(t *testing.T) {
	const control, rmem = "sysctl:net.ipv4.tcp_congestion_control", "sysctl:net.core.rmem_max"
	for _, c := range []struct {
		id   knob.ID
		err  error
		at   standpoint
		want string
	}{
		// The kernel refuses a name that the host does not allow its namespaces, to their root, too.
		{control, syscall.EPERM, standpoint{container: true, root: true}, "net.ipv4.tcp_allowed_congestion_control"},
		{control, syscall.EPERM, standpoint{container: true}, "this needs root"},
		{control, syscall.EPERM, standpoint{root: true}, "this needs root"},
		{rmem, fs.ErrNotExist, standpoint{global: true, container: true, root: true}, knob.HintGlobal},
		{rmem, fs.ErrNotExist, standpoint{global: true, root: true}, "no such setting"},
		{rmem, syscall.EINVAL, standpoint{root: true}, ""},
		// What is not there is listed by the pattern of its kind; a driver's refusal has no list.
		{"link:nope/mtu", fs.ErrNotExist, standpoint{root: true, pattern: "link:*/mtu"}, "--current 'link:*/mtu'"},
		{"queue:eth0/rx-9/rps_cpus", fs.ErrNotExist, standpoint{root: true, pattern: "queue:*/rx-*/rps_cpus"},
			"--current 'queue:*/rx-*/rps_cpus'"},
		{"nope:eth0/mtu", fs.ErrNotExist, standpoint{root: true}, ""},
		{"ethtool:eth0/ring.rx", syscall.EOPNOTSUPP, standpoint{root: true, pattern: "ethtool:*/ring.rx"}, "its driver"},
	} {
		if got := hintFor(c.id, c.err, c.at); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s, %v, %+v: %q, want %q", c.id, c.err, c.at, got, c.want)
		}
	}
}
