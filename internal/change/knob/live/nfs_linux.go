package live

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
)

// nfsKnobs are options of NFS mounts, as the kernel shows them in /proc/PID/mounts
// (proc_pid_mounts(5)). They are read only: client and server agree on them when the file system is
// mounted, and mounting again would take it from under the programs that use it.
type nfsKnobs struct{ mounts string } // /proc/thread-self/mounts

// nfsMount is one mount and its options: a name alone has an empty value.
type nfsMount struct {
	point   string
	options map[string]string
}

func (k nfsKnobs) read(point, option string) (knob.Value, error) {
	mounts, err := nfsMounts(k.mounts)
	if err != nil {
		return "", err
	}
	// Of several mounts on one point the last one is on top.
	var found *nfsMount
	for i := range mounts {
		if mounts[i].point == point {
			found = &mounts[i]
		}
	}
	if found == nil {
		return "", fmt.Errorf("%w: no NFS is mounted there", fs.ErrNotExist)
	}
	v, ok := found.options[option]
	switch {
	case ok:
		return knob.Value(v), nil
	case option == "nconnect":
		return "1", nil // shown when there are several connections only (nfs_show_nfs_options)
	}
	return "", fmt.Errorf("%w: the mount does not show the option %s", knob.ErrNotSupported, option)
}

func (k nfsKnobs) write(point, option string, _ knob.Value) error {
	if _, err := k.read(point, option); err != nil {
		return err
	}
	return fmt.Errorf("%w: takes effect when the file system is mounted again", knob.ErrReadOnly)
}

func (k nfsKnobs) check(point, option string, _ knob.Value) error { return k.write(point, option, "") }

func nfsMounts(file string) ([]nfsMount, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parseNFSMounts(string(text)), nil
}

// parseNFSMounts reads lines of six fields: device, mount point, type, options, and two numbers.
// Blanks, tabs, line ends and backslashes within a field are written in octal (mangle_path of the
// kernel).
func parseNFSMounts(text string) []nfsMount {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var out []nfsMount
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 4 || f[2] != "nfs" && f[2] != "nfs4" {
			continue
		}
		m := nfsMount{point: unescape.Replace(f[1]), options: make(map[string]string)}
		for _, o := range strings.Split(f[3], ",") {
			name, value, _ := strings.Cut(o, "=")
			m.options[name] = value
		}
		out = append(out, m)
	}
	return out
}
