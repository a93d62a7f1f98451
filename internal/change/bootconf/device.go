package bootconf

import (
	"io/fs"
	"net"
	"os"
	"path"
	"regexp"
	"strings"
)

// Device is what configuration files can name an interface by. What is not known is empty.
type Device struct {
	Name string `json:"name"`
	// Permanent is the address that the hardware was made with, in lower case with colons. Virtual
	// interfaces have none.
	Permanent string `json:"permanent_address,omitempty"`
	Address   string `json:"address,omitempty"` // at present
	Path      string `json:"path,omitempty"`    // where it sits, as udev writes it: pci-0000:03:00.0
	Driver    string `json:"driver,omitempty"`
}

// pciAddress is one element of a path in sysfs.
var pciAddress = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// LiveDevice is what names an interface of this host lastingly.
//
// A sysfs shows the network namespace that it was mounted in; an interface of ours that has a
// namesake there is known by its address.
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

// FindDevice reads what sysfs, below the root directory of a host, tells of an interface. Where
// that shows nothing, only the name is known.
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
	// addr_assign_type 0 is NET_ADDR_PERM (include/uapi/linux/netdevice.h): nobody has given it
	// another address.
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
