package procfs

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Mount is one mounted file system of /proc/PID/mounts.
type Mount struct {
	Source  string // of NFS: SERVER:/PATH
	Path    string
	Type    string
	Options string // as the kernel prints them: negotiated, not requested
}

// ParseNFSMounts reads the NFS mounts of /proc/PID/mounts (proc_pid_mounts(5), show_vfsmnt and
// nfs_show_options). It omits other file systems: they do not involve the network, and a user's
// mount points are private.
func ParseNFSMounts(b []byte) []Mount {
	var mounts []Mount
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || (fields[2] != "nfs" && fields[2] != "nfs4") {
			continue
		}
		mounts = append(mounts, Mount{Source: unescape(fields[0]), Path: unescape(fields[1]), Type: fields[2],
			Options: unescape(fields[3])})
	}
	return mounts
}

// unescape restores the blanks, tabs, line ends and backslashes that the kernel prints as three
// octal digits (mangle in fs/proc_namespace.c).
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// ParseNeighbourEntries reads the number of neighbours in a table from /proc/net/stat/arp_cache or
// ndisc_cache (neigh_stat_seq_show in net/core/neighbour.c), in hexadecimal. The file has a line
// for each CPU, and every line repeats this column, which is of the whole machine.
func ParseNeighbourEntries(b []byte) (uint64, error) {
	head, b := cutLine(b)
	if name, _ := word(head); !bytes.Equal(name, []byte("entries")) {
		return 0, fmt.Errorf("first column %.20q: %w", name, ErrFormat)
	}
	line, _ := cutLine(b)
	column, _ := word(line)
	n, ok := parseHex(column)
	if !ok {
		return 0, fmt.Errorf("%.20q is not a number: %w", column, ErrFormat)
	}
	return n, nil
}
