package persist_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/native"
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

// stubs starts the programs of a directory in place of the system's.
type stubs string

func (s stubs) Run(ctx context.Context, program string, args ...string) ([]byte, error) {
	return exec.CommandContext(ctx, filepath.Join(string(s), program), args...).Output()
}

// stubIpadm keeps the value of one property in a file, and records every order to set it.
const stubIpadm = `#!/bin/sh
cd "${0%/*}" || exit 1
case $1 in
show-prop) echo "rw:$(cat value):$(cat value):1048576:8192-1073741824" ;;
set-prop) echo "$@" >>orders; for word; do case $word in max_buf=*) echo "${word#max_buf=}" >value ;; esac; done ;;
esac
`

// TestPropertyOfIllumosGoesBack persists a property, starts the host again, and undoes the change
// in that boot: the script goes, the old value comes back, and the next start sets nothing.
func TestPropertyOfIllumosGoesBack(t *testing.T) {
	dir, root, state := t.TempDir(), t.TempDir(), t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	orders := func() string {
		b, err := os.ReadFile(filepath.Join(dir, "orders"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "orders")); err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const scripts = "etc/rc2.d"
	if err := os.MkdirAll(filepath.Join(root, scripts), 0o755); err != nil {
		t.Fatal(err)
	}
	// start is what the system does in every run level: each script, with one word.
	start := func(word string) {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(root, scripts, "S*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, script := range found {
			content, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(string(content), "/usr/sbin/", dir+"/")
			if out, err := exec.Command("sh", "-euc", text, script, word).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	boot := func(id string) *journal.Journal {
		t.Helper()
		j, err := journal.Open(journal.Options{Dir: state,
			Backend:   native.Solaris(knob.Catalogue(), stubs(dir), durable.OS()),
			Unguarded: true, BootID: id, Identify: func(knob.ID) journal.Identity { return journal.Identity{} }})
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	write("ipadm", stubIpadm)
	write("value", "1048576\n")

	j := boot("first")
	changes, err := j.Apply(t.Context(), journal.Request{}, knob.Setting{Knob: "ipadm:tcp/max_buf", Value: "4194304"})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Commit(t.Context(), changes[0].ID); err != nil {
		t.Fatal(err)
	}
	step := sunPlanner(scripts).Plan(changes[0])
	if _, err := j.Persist(t.Context(), root, journal.Plan{ID: changes[0].ID, Files: step.Files}); err != nil {
		t.Fatal(err)
	}
	if got := orders(); got != "set-prop -t -p max_buf=4194304 tcp\n" {
		t.Errorf("set: %q", got)
	}
	j.Close()

	write("value", "1048576\n") // the system's default, until the script runs
	start("start")
	if got := orders(); got != "set-prop -t -p max_buf=4194304 tcp\n" {
		t.Errorf("the start: %q", got)
	}
	j = boot("second")
	defer j.Close()
	if outcomes, err := j.Recover(t.Context()); err != nil || len(outcomes) > 0 {
		t.Errorf("recovery touched what is persisted: %+v, %v", outcomes, err)
	}
	outcomes, err := j.UndoAll(t.Context())
	if err != nil || len(outcomes) != 1 || !outcomes[0].Restored {
		t.Errorf("undo: %+v, %v", outcomes, err)
	}
	if got := orders(); got != "set-prop -t -p max_buf=1048576 tcp\n" {
		t.Errorf("undo: %q", got)
	}
	start("start")
	start("stop")
	if left, err := os.ReadDir(filepath.Join(root, scripts)); err != nil || len(left) > 0 || orders() != "" {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
