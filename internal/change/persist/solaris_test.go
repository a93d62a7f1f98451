package persist_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/persist"
)

func sunPlanner(dirs ...string) *persist.Planner {
	root := fstest.MapFS{}
	for _, d := range dirs {
		root[d+"/README"] = &fstest.MapFile{Mode: 0o644}
	}
	return persist.New(persist.Host{Root: root, Device: func(string) bootconf.Device { return bootconf.Device{} }})
}

// A shell runs the script with stand-ins for the programs: at a start, and at a stop.
func TestPropertiesOfIllumosAreSetAtEveryStart(t *testing.T) {
	p := sunPlanner("etc/rc2.d")
	for _, c := range []struct {
		knob  knob.ID
		value knob.Value
		want  string
	}{
		{"ipadm:tcp/max_buf", "4194304", "ipadm set-prop -t -p max_buf=4194304 tcp\n"},
		{"dladm:net0/_intr_throttling_rate", "488", "dladm set-linkprop -t -p _intr_throttling_rate=488 net0\n"},
	} {
		s := p.Plan(journal.Change{ID: "0007", Knob: c.knob, To: c.value})
		if s.Format != persist.StartScript || len(s.Files) != 1 || s.Files[0].Path != "/etc/rc2.d/S90linerate-0007" ||
			s.Files[0].Mode != 0o744 {
			t.Errorf("%+v", s)
			continue
		}
		dir := t.TempDir()
		for _, name := range []string{"ipadm", "dladm"} {
			script := "#!/bin/sh\necho " + name + " \"$@\"\n"
			if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		text := strings.ReplaceAll(s.Files[0].Content, "/usr/sbin/", dir+"/")
		for word, want := range map[string]string{"start": c.want, "stop": ""} {
			out, err := exec.Command("sh", "-c", text, "script", word).CombinedOutput()
			if err != nil || string(out) != want {
				t.Errorf("%s %s: %v %q, want %q", c.knob, word, err, out, want)
			}
		}
	}
}

func TestPropertiesOfIllumosByHand(t *testing.T) {
	for _, c := range []struct {
		dir   string
		knob  knob.ID
		value knob.Value
		want  string
	}{
		{"etc/rc2.d", "dladm:net0/mtu", "9000", "`dladm set-linkprop -p mtu=9000 net0`, without -t"}, // EBUSY at a start
		{"etc/rc2.d", "ipadm:tcp/send_buf", "1;reboot", "`ipadm set-prop -p send_buf=1;reboot tcp`, without -t"},
		{"etc", "ipadm:tcp/send_buf", "65536", "`ipadm set-prop -p send_buf=65536 tcp`, without -t"},
	} {
		s := sunPlanner(c.dir).Plan(journal.Change{ID: "0001", Knob: c.knob, To: c.value})
		if s.Format != persist.ByHand || s.Line != c.want || s.Files != nil {
			t.Errorf("%s: %+v", c.knob, s)
		}
	}
}
