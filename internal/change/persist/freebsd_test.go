package persist_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/persist"
)

func TestFreeBSDBlocks(t *testing.T) {
	root := fstest.MapFS{
		"etc/defaults/rc.conf": {Data: []byte("dumpdev=\"NO\"\n")},
		"etc/sysctl.conf":      {Data: []byte("vfs.zfs.min_auto_ashift=12"), Mode: 0o640},
		"etc/rc.conf":          {Data: []byte("ifconfig_em0=\"DHCP\"\n"), Mode: 0o644},
	}
	p := persist.New(persist.Host{Root: root, Device: func(string) bootconf.Device { return bootconf.Device{} }})
	for _, c := range []struct {
		knob          knob.ID
		value         knob.Value
		path, content string
		line          string
	}{
		{"sysctl:net.inet.tcp.sendbuf_max", "4194304", "/etc/sysctl.conf",
			"\n# linerate begin 0001\nnet.inet.tcp.sendbuf_max=4194304\n# linerate end 0001\n", ""},
		{"sysctl:net.inet.tcp.cc.algorithm", "htcp", "/etc/sysctl.conf",
			"\n# linerate begin 0002\nnet.inet.tcp.cc.algorithm=htcp\n# linerate end 0002\n", ""},
		{"ifconfig:em0/tso4", "off", "/etc/rc.conf",
			"\n# linerate begin 0003\nifconfig_em0=\"${ifconfig_em0} -tso4\"\n# linerate end 0003\n", ""},
		{"ifconfig:em1/mtu", "9000", "", "", "mtu 9000, among the options of ifconfig_em1 in /etc/rc.conf"},
		{"ipadm:tcp/send_buf", "65536", "", "", "`ipadm set-prop -p send_buf=65536 tcp`, without -t"},
		{"loader:kern.hz", "1000", "", "", "nothing: the setting is in its file"},
	} {
		id := map[string]string{"/etc/rc.conf": "0003"}[c.path]
		if c.path == "/etc/sysctl.conf" {
			id = c.content[len("# linerate begin ")+strings.Index(c.content, "#"):][:4]
		}
		s := p.Plan(journal.Change{ID: id, Knob: c.knob, To: c.value})
		switch {
		case c.line != "" && (s.Format != persist.ByHand || !strings.HasPrefix(s.Line, c.line)):
			t.Errorf("%s: %+v", c.knob, s)
		case c.line == "" && (len(s.Files) != 1 || s.Files[0].Path != c.path || s.Files[0].Content != c.content ||
			!s.Files[0].Block):
			t.Errorf("%s: %+v", c.knob, s)
		}
	}
}
