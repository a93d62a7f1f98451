package guest

// System says what is on a disk.
type System struct {
	Packages []string // of Debian, with what they depend on and nothing that they only recommend
	Modules  []string // of the kernel, for udev and modprobe(8), with what they depend on
	Enable   []string // units to start at boot, as by systemctl enable
}
