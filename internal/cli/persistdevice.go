package cli

import (
	"net"
	"os"

	"github.com/linerate/linerate/internal/bootconf"
)

// liveDevice says what names an interface of this host lastingly.
//
// A sysfs shows the network namespace that it was mounted in; an interface of ours that has a namesake there is known by its index.
func liveDevice(name string) bootconf.Device {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return bootconf.Device{Name: name}
	}
	d := bootconf.FindDevice(os.DirFS("/"), name)
	if d.Address != link.HardwareAddr.String() {
		return bootconf.Device{Name: name, Address: link.HardwareAddr.String()}
	}
	return d
}
