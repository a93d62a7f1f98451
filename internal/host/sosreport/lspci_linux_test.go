package sosreport

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/host/sosreport/printed"
)

// Of every PCI device of this machine lspci says what sysfs says.
func TestLiveAgreesWithLspci(t *testing.T) {
	needTools(t, "lspci")
	text, _ := prints("lspci -nnvv -D")
	dirs, err := filepath.Glob("/sys/bus/pci/devices/*")
	if err != nil {
		t.Fatal(err)
	}
	devices := printed.ParsePCI(text)
	if len(devices) != len(dirs) {
		t.Errorf("%d devices read, sysfs has %d", len(devices), len(dirs))
	}
	for _, d := range devices {
		file := func(name string) string {
			b, _ := os.ReadFile("/sys/bus/pci/devices/" + d.Address + "/" + name) // Older kernels lack some.
			return strings.TrimSpace(string(b))
		}
		same := func(what, ours, theirs string) {
			t.Helper()
			if ours != theirs {
				t.Errorf("%s: %s %q, sysfs has %q", d.Address, what, ours, theirs)
			}
		}
		same("vendor", d.Vendor, file("vendor"))
		same("device", d.Device, file("device"))
		if d.SubsystemVendor != "" {
			same("subsystem", d.SubsystemVendor+" "+d.SubsystemDevice, file("subsystem_vendor")+" "+
				file("subsystem_device"))
		}
		if d.NUMANode >= 0 {
			same("node", strconv.Itoa(d.NUMANode), file("numa_node"))
		}
		if d.Speed != "" {
			same("speed", d.Speed, file("current_link_speed"))
			same("width", strconv.Itoa(d.Width), file("current_link_width"))
			same("best speed", d.MaxSpeed, file("max_link_speed"))
			same("best width", strconv.Itoa(d.MaxWidth), file("max_link_width"))
		}
	}
}

// What lspci prints of the configuration space of a card is read as what package bus makes of that
// space itself.
func TestLspciOfCaptures(t *testing.T) {
	needTools(t, "lspci")
	compared := 0
	for name, root := range captures(t) {
		want, err := root.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		devices := make(map[string]*printed.PCIDevice)
		for _, d := range printed.ParsePCI(dumped(t, root.FS)) {
			devices[d.Address] = d
		}
		for _, dev := range want.Interfaces {
			if dev.Bus == nil || dev.Card == nil || devices[dev.Bus.Address] == nil {
				continue
			}
			compared++
			d := devices[dev.Bus.Address]
			if id := strings.TrimPrefix(d.Vendor, "0x") + ":" +
				strings.TrimPrefix(d.Device, "0x"); id != dev.Card.PCIID {
				t.Errorf("%s %s: id %s, want %s", name, dev.Name, id, dev.Card.PCIID)
			}
			if dev.Card.PayloadBytes != d.PayloadBytes || dev.Card.PayloadSupportedBytes != d.PayloadSupportedBytes ||
				dev.Card.ReadRequestBytes != d.ReadRequestBytes {
				t.Errorf("%s %s: %+v, want payload %d of %d, requests of %d bytes", name, dev.Name, d,
					dev.Card.PayloadBytes, dev.Card.PayloadSupportedBytes, dev.Card.ReadRequestBytes)
			}
			if dev.Bus.Kind == "pcie" &&
				(d.Width != dev.Bus.Width || d.Speed != fmt.Sprintf("%.1f GT/s PCIe", dev.Bus.SpeedGigatransfers)) {
				t.Errorf("%s %s: %s x%d, want %v x%d", name, dev.Name, d.Speed, d.Width, dev.Bus.SpeedGigatransfers,
					dev.Bus.Width)
			}
		}
	}
	if compared < 3 {
		t.Errorf("only %d cards have a configuration space", compared)
	}
}

// dumped gives what lspci shows of the configuration spaces in a capture, by way of the form that
// lspci -x prints and -F reads.
func dumped(t *testing.T, fsys fs.FS) string {
	t.Helper()
	var b strings.Builder
	err := fs.WalkDir(fsys, "sys/devices", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Base(name) != "config" {
			return err
		}
		config, err := fs.ReadFile(fsys, name)
		fmt.Fprintf(&b, "%s Device\n", path.Base(path.Dir(name)))
		for at := 0; at+16 <= len(config); at += 16 {
			fmt.Fprintf(&b, "%02x:", at)
			for _, octet := range config[at : at+16] {
				b.WriteString(" " + hex.EncodeToString([]byte{octet}))
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if b.Len() == 0 {
		return ""
	}
	text, _ := prints("lspci -nnvv -F " + write(t, "dump", []byte(b.String())))
	return text
}
