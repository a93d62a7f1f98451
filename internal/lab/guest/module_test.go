package guest

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestModuleInfo(t *testing.T) {
	info := parseModuleInfo(
		[]byte("license=GPL v2\x00alias=pci:v8086\x00alias=pci:v1af4\x00" +
			"depends=virtio-ring,virtio,\x00\x00name=virtio_net\x00junk"))
	if got, want := info.depends(), []string{"virtio_ring", "virtio"}; !cmp.Equal(got, want) {
		t.Errorf("depends %q; want %q", got, want)
	}
	if got := info["alias"]; len(got) != 2 || info["name"][0] != "virtio_net" || len(info["junk"]) != 0 {
		t.Errorf("info %q", info)
	}
	if got := parseModuleInfo([]byte("depends=\x00")).depends(); got != nil {
		t.Errorf("a module without dependencies has %q", got)
	}
	if _, err := readModuleInfo(strings.NewReader("no ELF file")); err == nil {
		t.Error("a text was accepted as a module")
	}
}

func TestLoadOrder(t *testing.T) {
	tree := map[string][]string{
		"e1000e": {"ptp"}, "ptp": {"pps_core"}, "pps_core": nil, "e1000": nil,
		"virtio_net": {"net_failover", "virtio_ring", "virtio"}, "net_failover": {"failover"}, "failover": nil,
		"virtio": {"virtio_ring"}, "virtio_ring": nil,
		"a": {"b"}, "b": {"a"},
	}
	depends := func(name string) ([]string, bool, error) {
		needs, ok := tree[name]
		if !ok && name != "unix" {
			return nil, false, fs.ErrNotExist
		}
		return needs, name == "unix", nil
	}
	got, err := loadOrder([]string{"e1000e", "virtio-net", "unix", "ptp"}, depends)
	want := []string{"pps_core", "ptp", "e1000e", "failover", "net_failover", "virtio_ring", "virtio", "virtio_net"}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("order %q, %v; want %q", got, err, want)
	}
	if _, err := loadOrder([]string{"no-such"}, depends); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), "no_such") {
		t.Errorf("missing module: %v", err)
	}
	if _, err := loadOrder([]string{"a"}, depends); err == nil {
		t.Error("a ring of modules has an order")
	}
}

// The parser accepts every section, and returns no dependency that is empty or differs from the
// kernel's spelling.
func FuzzModuleInfo(f *testing.F) {
	f.Add([]byte("depends=a,b-c\x00license=GPL\x00"))
	f.Add(bytes.Repeat([]byte{0, '='}, 8))
	f.Fuzz(func(t *testing.T, section []byte) {
		for _, name := range parseModuleInfo(section).depends() {
			if name == "" || strings.ContainsAny(name, "-,\x00") {
				t.Fatalf("dependency %q", name)
			}
		}
	})
}
