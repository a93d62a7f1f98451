package guest

// System describes the system on a disk.
type System struct {
	Packages []string // of Debian, with their dependencies and without recommendations
	Modules  []string // of the kernel, for udev and modprobe(8), with their dependencies
	Enable   []string // units to start at boot, as by systemctl enable
}
