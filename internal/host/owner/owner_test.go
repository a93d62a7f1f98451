package owner

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree is a host as a map of files.
func tree(files map[string]string) Tree {
	return Tree{
		Exists: func(name string) bool { _, ok := files[name]; return ok },
		Text:   func(name string) string { return files[name] },
		List: func(dir string) []string {
			var names []string
			for name := range files {
				if len(name) > len(dir) && name[:len(dir)+1] == dir+"/" {
					names = append(names, name[len(dir)+1:])
				}
			}
			slices.Sort(names)
			return names
		},
	}
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		name    string
		files   map[string]string
		running map[string]bool
		want    []Owner
	}{
		{"no owner", nil, nil, nil},
		{"a profile without its program", map[string]string{"etc/tuned/active_profile": "virtual-guest"}, nil, nil},
		{"an old server", map[string]string{"run/network/ifstate": ""}, map[string]bool{"irqbalance": true}, []Owner{
			{Name: "irqbalance", Running: true, Manages: "interrupt affinity", Marks: "process irqbalance"},
			{Name: "ifupdown", Manages: "addresses, routes and MTU, at boot", Marks: "/run/network/ifstate"},
		}},
		{"a cloud server", map[string]string{
			"etc/tuned/active_profile": "throughput-performance", "run/tuned/tuned.pid": "17",
			"run/systemd/netif/state":        "",
			"etc/netplan/50-cloud-init.yaml": "", "etc/netplan/README": "", "run/cloud-init/result.json": "",
		}, map[string]bool{"tuned": true, "systemd-network": true}, []Owner{
			{Name: "tuned", Running: true,
				Manages: "sysctls, rings, channels, coalescing, governors and idle states, by profile",
				Profile: "throughput-performance", Marks: "process tuned, /run/tuned/tuned.pid"},
			{Name: "systemd-networkd", Running: true, Manages: "addresses, routes, MTU and queueing disciplines",
				Marks: "process systemd-network, /run/systemd/netif/state"},
			{Name: "netplan", Manages: "the configuration of NetworkManager or systemd-networkd, at boot",
				Marks: "/etc/netplan/*.yaml"},
			{Name: "cloud-init", Manages: "the network configuration, at boot", Marks: "/run/cloud-init/result.json"},
		}},
		{"netplan's directory alone", map[string]string{"etc/netplan/README": ""}, nil, nil},
	} {
		if diff := cmp.Diff(c.want, Find(tree(c.files), c.running)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestProcesses: the kernel cuts a process's name to 15 bytes, so a longer one in the table would
// never be found.
func TestProcesses(t *testing.T) {
	names := Processes()
	if !names["irqbalance"] || !names["systemd-network"] {
		t.Errorf("processes %v", names)
	}
	for name := range names {
		if len(name) > 15 {
			t.Errorf("%q is longer than TASK_COMM_LEN allows", name)
		}
	}
}
