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
)

// Of every PCI device of this machine lspci says what sysfs says.
func TestLiveAgreesWithLspci(t *testing.T) {
	needTools(t, "lspci")
	text, _ := prints("lspci -nnvv -D")
	dirs, err := filepath.Glob("/sys/bus/pci/devices/*")
	if err != nil {
		t.Fatal(err)
	}
	devices := parsePCI(text)
	if len(devices) != len(dirs) {
		t.Errorf("%d devices read, sysfs has %d", len(devices), len(dirs))
	}
	for _, d := range devices {
		file := func(name string) string {
			b, _ := os.ReadFile("/sys/bus/pci/devices/" + d.address + "/" + name) // Older kernels lack some.
			return strings.TrimSpace(string(b))
		}
		same := func(what, ours, theirs string) {
			t.Helper()
			if ours != theirs {
				t.Errorf("%s: %s %q, sysfs has %q", d.address, what, ours, theirs)
			}
		}
		same("vendor", d.vendor, file("vendor"))
		same("device", d.device, file("device"))
		if d.subVendor != "" {
			same("subsystem", d.subVendor+" "+d.subDevice, file("subsystem_vendor")+" "+file("subsystem_device"))
		}
		if d.node >= 0 {
			same("node", strconv.Itoa(d.node), file("numa_node"))
		}
		if d.speed != "" {
			same("speed", d.speed, file("current_link_speed"))
			same("width", strconv.Itoa(d.width), file("current_link_width"))
			same("best speed", d.maxSpeed, file("max_link_speed"))
			same("best width", strconv.Itoa(d.maxWidth), file("max_link_width"))
		}
	}
}

// What lspci prints of the configuration space of a card is read as what package bus makes of that space itself.
func TestLspciOfCaptures(t *testing.T) {
	needTools(t, "lspci")
	compared := 0
	for name, root := range captures(t) {
		want, err := root.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		devices := make(map[string]*pciDevice)
		for _, d := range parsePCI(dumped(t, root.FS)) {
			devices[d.address] = d
		}
		for _, dev := range want.Interfaces {
			if dev.Bus == nil || dev.Card == nil || devices[dev.Bus.Address] == nil {
				continue
			}
			compared++
			d := devices[dev.Bus.Address]
			if id := strings.TrimPrefix(d.vendor, "0x") + ":" + strings.TrimPrefix(d.device, "0x"); id != dev.Card.PCIID {
				t.Errorf("%s %s: id %s, want %s", name, dev.Name, id, dev.Card.PCIID)
			}
			if dev.Card.PayloadBytes != d.payload || dev.Card.PayloadSupportedBytes != d.maxPayload || dev.Card.ReadRequestBytes != d.reads {
				t.Errorf("%s %s: %+v, want payload %d of %d, requests of %d bytes", name, dev.Name, d, dev.Card.PayloadBytes, dev.Card.PayloadSupportedBytes, dev.Card.ReadRequestBytes)
			}
			if dev.Bus.Kind == "pcie" && (d.width != dev.Bus.Width || d.speed != fmt.Sprintf("%.1f GT/s PCIe", dev.Bus.SpeedGigatransfers)) {
				t.Errorf("%s %s: %s x%d, want %v x%d", name, dev.Name, d.speed, d.width, dev.Bus.SpeedGigatransfers, dev.Bus.Width)
			}
		}
	}
	if compared < 3 {
		t.Errorf("only %d cards have a configuration space", compared)
	}
}

// dumped gives what lspci shows of the configuration spaces in a capture, by way of the form that lspci -x prints and -F reads.
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
