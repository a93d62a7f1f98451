package live

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/change/knob"
)

// tree makes a directory of files; the mode is 0644, or 0444 for names that end with "!".
//
// Interrupts and modules belong to the whole host, so that no namespace can hold a trial of them:
// what is read and written here is a directory of the same shape.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		mode := fs.FileMode(0o644)
		if n, ok := strings.CutSuffix(name, "!"); ok {
			name, mode = n, 0o444
		}
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// answer names the kind of an error, and fails when it is several at once.
func answer(t *testing.T, err error) string {
	t.Helper()
	var kinds []string
	for name, kind := range map[string]error{
		"not there": fs.ErrNotExist, "not permitted": fs.ErrPermission, "not supported": knob.ErrNotSupported,
		"invalid": knob.ErrInvalid,
	} {
		if errors.Is(err, kind) {
			kinds = append(kinds, name)
		}
	}
	switch {
	case err == nil:
		return "ok"
	case len(kinds) != 1:
		t.Errorf("%v is %q", err, kinds)
	case errors.Is(err, knob.ErrReadOnly):
		return "read-only"
	}
	return strings.Join(kinds, ", ")
}

func TestInterrupts(t *testing.T) {
	root := tree(t, map[string]string{
		"24/smp_affinity_list": "3\n", "24/effective_affinity_list!": "2\n",
		"25/smp_affinity_list": "1\n", // an old kernel: no effective affinity
	})
	k := irqKnobs{root: root}
	for _, tc := range []struct{ irq, attribute, want, answer string }{
		{"24", "affinity", "3", "ok"},
		{"24", "effective_affinity", "2", "ok"},
		{"25", "affinity", "1", "ok"},
		{"25", "effective_affinity", "", "not there"},
		{"26", "affinity", "", "not there"},
		{"none", "affinity", "", "not there"},
		{"../24", "affinity", "", "not there"},
		{"24", "colour", "", "not supported"},
	} {
		v, err := k.read(tc.irq, tc.attribute)
		if got := answer(t, err); got != tc.answer || string(v.Squeeze()) != tc.want {
			t.Errorf("%s %s: %q, %v; want %q and %s", tc.irq, tc.attribute, v, err, tc.want, tc.answer)
		}
	}
	if err := errors.Join(k.check("24", "affinity", "1"), k.write("24", "affinity", "1")); err != nil {
		t.Error(err)
	}
	if v, err := k.read("24", "affinity"); err != nil || v.Squeeze() != "1" {
		t.Errorf("reads %q, %v", v, err)
	}
	if got := answer(t, k.write("26", "affinity", "1")); got != "not there" {
		t.Errorf("write of a missing interrupt: %s", got)
	}
}

func TestModules(t *testing.T) {
	root := tree(t, map[string]string{
		"pcie_aspm/parameters/policy":        "[default] performance powersave powersupersave \n",
		"tcp_cubic/parameters/hystart":       "1\n",
		"nf_conntrack/parameters/acct":       "N\n",
		"nf_conntrack/parameters/hashsize":   "65536\n",
		"e1000e/parameters/copybreak":        "256\n",
		"some_driver/parameters/text!":       "a  [b] c\n",
		"some_driver/parameters/mode":        "[b]\n",
		"igb/version":                        "1\n", // loaded, and shows no parameters
		"intel_idle/parameters/max_cstate!":  "9\n",
		"sunrpc/parameters/tcp_max_slot_tab": "1\n",
	})
	k := moduleKnobs{root: root, catalog: knob.Catalogue()}
	for _, tc := range []struct{ module, parameter, want, answer string }{
		{"pcie_aspm", "policy", "default", "ok"},
		{"nf_conntrack", "acct", "N", "ok"},
		{"some_driver", "text", "a [b] c", "ok"}, // what the catalogue does not know is left as it is
		{"some_driver", "mode", "[b]", "ok"},
		{"e1000e", "InterruptThrottleRate", "", "not supported"}, // declared with mode 0
		{"e1000e", "no_such", "", "not there"},
		{"e1000", "InterruptThrottleRate", "", "not there"}, // not loaded
		{"igb", "x", "", "not there"},
		{"..", "x", "", "not there"},
		{"a/b", "x", "", "not there"},
		{"tcp_cubic", "..", "", "not there"},
	} {
		v, err := k.read(tc.module, tc.parameter)
		if got := answer(t, err); got != tc.answer || string(v.Squeeze()) != tc.want {
			t.Errorf("%s %s: %q, %v; want %q and %s", tc.module, tc.parameter, v, err, tc.want, tc.answer)
		}
	}
	for _, tc := range []struct{ module, parameter, value, answer string }{
		{"e1000e", "copybreak", "512", "ok"},
		{"e1000e", "InterruptThrottleRate", "3000", "read-only"},
		{"e1000", "InterruptThrottleRate", "3000", "not there"},
		{"a/b", "x", "1", "not there"},
	} {
		checked, err := k.check(tc.module, tc.parameter, "1"), k.write(tc.module, tc.parameter, knob.Value(tc.value))
		if a, b := answer(t, err), answer(t, checked); a != tc.answer || b != tc.answer {
			t.Errorf("write %s %s: %v, foreseen %v; want %s", tc.module, tc.parameter, err, checked, tc.answer)
		}
	}
	// Canonical forms come from the definitions.
	d, _ := knob.Catalogue().Lookup("module:nf_conntrack/acct")
	if v, err := d.Canonical("N"); v != "0" || err != nil {
		t.Errorf("N is %q, %v", v, err)
	}
}

// What a driver answers behind an open file is one of the package's answers, and one only.
func TestDeviceErrors(t *testing.T) {
	for errno, want := range map[unix.Errno]string{
		unix.ENODEV: "not there", unix.EOPNOTSUPP: "not supported", unix.ENOENT: "not supported",
		unix.EOVERFLOW: "invalid",
		unix.EPERM:     "not permitted",
	} {
		if got := answer(t, deviceError(errno)); got != want {
			t.Errorf("%v: %s; want %s", errno, got, want)
		}
	}
}

// A missing sysfs, or one of another namespace, is "not supported from here"; only a missing
// interface is "not there".
func TestSysfsThatIsNotOurs(t *testing.T) {
	for name, root := range map[string]string{
		"none": t.TempDir(),
		"foreign": tree(t, map[string]string{"class/net/lo/ifindex": "77\n",
			"class/net/lo/address": "00:00:00:00:00:00\n"}),
		"empty": tree(t, map[string]string{"class/net/bonding_masters": "\n"}),
	} {
		_, err := sysfs(root).readAttribute("lo", "threaded")
		if got := answer(t, err); got != "not supported" {
			t.Errorf("%s: %v", name, err)
		}
		_, err = sysfs(root).readAttribute("no-such-link", "threaded")
		if got := answer(t, err); got != "not there" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const sampleMounts = `sysfs /sys sysfs rw 0 0
filer:/a /mnt/my\040data nfs4 rw,relatime,vers=4.2,rsize=1048576,wsize=524288,` +
	`hard,proto=tcp,nconnect=4,addr=192.0.2.1 0 0
filer:/b /mnt/b nfs rw,vers=3,rsize=8192,wsize=8192 0 0
filer:/c /mnt/b nfs rw,vers=3,rsize=32768 0 0
short line
`

func TestNFS(t *testing.T) {
	k := nfsKnobs{mounts: filepath.Join(tree(t, map[string]string{"mounts": sampleMounts}), "mounts")}
	for _, tc := range []struct{ point, option, want, answer string }{
		{"/mnt/my data", "rsize", "1048576", "ok"},
		{"/mnt/my data", "nconnect", "4", "ok"},
		{"/mnt/b", "rsize", "32768", "ok"}, // the one on top
		{"/mnt/b", "nconnect", "1", "ok"},
		{"/mnt/b", "wsize", "", "not supported"},
		{"/sys", "rsize", "", "not there"},
	} {
		v, err := k.read(tc.point, tc.option)
		if got := answer(t, err); got != tc.answer || string(v) != tc.want {
			t.Errorf("%s %s: %q, %v; want %q and %s", tc.point, tc.option, v, err, tc.want, tc.answer)
		}
	}
	if got := answer(t, k.write("/mnt/b", "rsize", "65536")); got != "read-only" {
		t.Errorf("write: %s", got)
	}
	if got := answer(t, k.check("/mnt/none", "rsize", "65536")); got != "not there" {
		t.Errorf("write of a missing mount: %s", got)
	}
}

// No table of mounts makes the parser fail, and every mount has a place.
func FuzzParseNFSMounts(f *testing.F) {
	f.Add(sampleMounts)
	f.Add("a \\040 nfs ,,=,x= 0 0")
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range parseNFSMounts(text) {
			if m.point == "" || m.options == nil {
				t.Fatalf("%+v", m)
			}
		}
	})
}

// A user who may not read a file gets that error, and not that the file is read-only. A file
// without write permission for any user is read-only for root too.
func TestPermissionsOfFiles(t *testing.T) {
	root := tree(t, map[string]string{"shown!": "1", "switch": "1", "secret": "1"})
	for name, mode := range map[string]fs.FileMode{"switch": 0o200, "secret": 0o400} {
		if err := os.Chmod(filepath.Join(root, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		file    string
		writing bool
		want    string
	}{
		{"shown", true, "read-only"}, {"shown", false, "not permitted"},
		{"switch", false, "not supported"}, {"switch", true, "not permitted"},
		{"secret", false, "not permitted"}, {"secret", true, "read-only"},
		{"nowhere", false, "not permitted"},
	} {
		if got := answer(t, pseudoError(unix.AT_FDCWD, filepath.Join(root, tc.file), unix.EACCES,
			tc.writing)); got != tc.want {
			t.Errorf("%s, writing %v: %s; want %s", tc.file, tc.writing, got, tc.want)
		}
	}
	if got := answer(t, pseudoError(unix.AT_FDCWD, root, unix.EROFS, true)); got != "read-only" {
		t.Errorf("read-only file system: %s", got)
	}
}
