package bootconf

import (
	"io/fs"
	"net"
	"os"
	"path"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// Device is the names by which configuration files can refer to an interface. Unknown ones are
// empty.
type Device struct {
	Name string `json:"name"`
	// Permanent is the address assigned to the hardware, in lower case with colons. Virtual
	// interfaces have none.
	Permanent string `json:"permanent_address,omitempty"`
	Address   string `json:"address,omitempty"` // at present
	Path      string `json:"path,omitempty"`    // its location, as udev writes it: pci-0000:03:00.0
	Driver    string `json:"driver,omitempty"`
}

// pciAddress is one element of a path in sysfs.
var pciAddress = pattern.New(`^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// LiveDevice returns the persistent names of an interface of this host.
//
// A sysfs shows the network namespace in which it was mounted; the address distinguishes an
// interface of ours from one of the same name there.
func LiveDevice(name string) Device {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return Device{Name: name}
	}
	d := FindDevice(os.DirFS("/"), name)
	if d.Address != link.HardwareAddr.String() {
		return Device{Name: name, Address: link.HardwareAddr.String()}
	}
	return d
}

// FindDevice reads what sysfs, below the root directory of a host, shows of an interface. If it
// shows nothing, only the name is known.
func FindDevice(root fs.FS, name string) Device {
	d := Device{Name: name}
	dir := path.Join("sys/class/net", name)
	if !fs.ValidPath(dir) || strings.Contains(name, "/") {
		return d
	}
	text := func(file string) string {
		b, err := fs.ReadFile(root, path.Join(dir, file))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(b))
	}
	if d.Address = strings.ToLower(text("address")); d.Address == "00:00:00:00:00:00" {
		d.Address = ""
	}
	target, err := fs.ReadLink(root, dir)
	if err != nil || strings.Contains(target, "/virtual/") {
		return d
	}
	// addr_assign_type 0 is NET_ADDR_PERM (include/uapi/linux/netdevice.h): the address was not
	// changed.
	if text("addr_assign_type") == "0" {
		d.Permanent = d.Address
	}
	if perm := strings.ToLower(text("bonding_slave/perm_hwaddr")); perm != "" {
		d.Permanent = perm
	}
	// Behind a USB bus the path of udev has more parts than the address of the controller.
	if !strings.Contains(target, "/usb") {
		for _, element := range strings.Split(target, "/") {
			if pciAddress.MatchString(element) {
				d.Path = "pci-" + element
			}
		}
	}
	if driver, err := fs.ReadLink(root, path.Join(dir, "device/driver")); err == nil {
		d.Driver = path.Base(driver)
	}
	return d
}
