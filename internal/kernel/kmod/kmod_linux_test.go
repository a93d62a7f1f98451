package kmod

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const list = `kernel/drivers/net/ethernet/intel/e1000/e1000.ko:
kernel/drivers/net/ethernet/intel/e1000e/e1000e.ko.xz: kernel/drivers/ptp/ptp.ko.xz kernel/drivers/pps/pps_core.ko.xz
/elsewhere/snd-hda.ko.zst: /elsewhere/snd.ko
`
	if err := os.WriteFile(filepath.Join(dir, "modules.dep"), []byte(list), 0o644); err != nil {
		t.Fatal(err)
	}
	tree := Tree(dir)
	for name, want := range map[string][]string{
		"e1000": {dir + "/kernel/drivers/net/ethernet/intel/e1000/e1000.ko"},
		"e1000e": {dir + "/kernel/drivers/pps/pps_core.ko.xz", dir + "/kernel/drivers/ptp/ptp.ko.xz",
			dir + "/kernel/drivers/net/ethernet/intel/e1000e/e1000e.ko.xz"},
		"snd_hda": {"/elsewhere/snd.ko", "/elsewhere/snd-hda.ko.zst"},
	} {
		file, needs, err := tree.file(name)
		if got := append(needs, file); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	if _, _, err := tree.file("e100"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("unknown module: %v", err)
	}
}

func TestPacked(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{"/a/e1000.ko": "", "/a/e1000.ko.xz": "xz", "b.ko.zst": "zst",
		"c.ko.gz": "gz"} {
		if got := packed(file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}

func TestReadyOfNothing(t *testing.T) {
	t.Parallel()
	if err := Tree(t.TempDir()).Ready("no_such_module_here"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
