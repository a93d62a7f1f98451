package host_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/owner"
)

// TestInterrupts: the card of an interrupt, in the three ways in which buses show it.
func TestInterrupts(t *testing.T) {
	files := map[string]string{
		"proc/interrupts": "           CPU0       CPU1\n" +
			" 19:          4          0   IO-APIC  19-fasteoi   eth9, usb1\n" +
			" 41:          0          7   PCI-MSIX-0000:03:00.0   0-edge      eth0\n" +
			" 42:          5          6   PCI-MSIX-0000:03:00.0   1-edge      eth0-TxRx-0\n" +
			" 50:          0          0   PCI-MSIX-0000:00:03.0   0-edge      virtio2-config\n" +
			" 51:          3          0   PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n" +
			" 60:          2          0   GICv3  30 Level     end1-rx\n" +
			" 61:          8          0   GICv3  31 Level     end10\n",
		"proc/irq/42/smp_affinity_list": "0-1", "proc/irq/42/effective_affinity_list": "1",
		"proc/irq/19/smp_affinity_list":                   "0-1",
		"sys/devices/pci0000:00/0000:03:00.0/msi_irqs/41": "msix",
		"sys/devices/pci0000:00/0000:03:00.0/msi_irqs/42": "msix",
		"sys/devices/pci0000:00/0000:03:00.0/msi_irqs/43": "msix", // an unused vector
		"sys/devices/pci0000:00/0000:00:03.0/msi_irqs/50": "msix",
		"sys/devices/pci0000:00/0000:00:03.0/msi_irqs/51": "msix",
		"sys/devices/pci0000:00/0000:05:00.0/irq":         "19",
	}
	device(files, "eth0", 2, "sys/devices/pci0000:00/0000:03:00.0")
	device(files, "eth1", 3, "sys/devices/pci0000:00/0000:00:03.0/virtio2")
	device(files, "eth9", 4, "sys/devices/pci0000:00/0000:05:00.0")
	device(files, "end1", 5, "sys/devices/platform/soc/end1.eth")
	s, err := tree(t, files).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string][]host.Interrupt)
	for _, i := range s.Interfaces {
		got[i.Name] = i.Interrupts
	}
	want := map[string][]host.Interrupt{
		"eth0": {{Number: 41, Name: "eth0", Counts: []host.CPUCount{{CPU: 1, Total: 7}}},
			{Number: 42, Name: "eth0-TxRx-0", Affinity: "0-1", EffectiveAffinity: "1",
				Counts: []host.CPUCount{{CPU: 0, Total: 5}, {CPU: 1, Total: 6}}}},
		"eth1": {{Number: 50, Name: "virtio2-config"},
			{Number: 51, Name: "virtio2-input.0", Counts: []host.CPUCount{{CPU: 0, Total: 3}}}},
		"eth9": {{Number: 19, Name: "eth9, usb1", Affinity: "0-1", Counts: []host.CPUCount{{CPU: 0, Total: 4}}}},
		"end1": {{Number: 60, Name: "end1-rx", Counts: []host.CPUCount{{CPU: 0, Total: 2}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCardAndSteering: the facts of sysfs about a card, its queues and its polling.
func TestCardAndSteering(t *testing.T) {
	at := "sys/devices/pci0000:00/0000:03:00.0"
	files := map[string]string{
		at + "/vendor": "0x8086", at + "/device": "0x1572", at + "/subsystem_vendor": "0x8086",
		at + "/subsystem_device": "0x0004",
		at + "/link/l1_aspm":     "1", at + "/link/l0s_aspm": "0", at + "/link/l1_1_aspm": "1", at + "/link/clkpm": "1",
		at + "/physfn -> ../0000:02:00.0": "", "sys/devices/pci0000:00/0000:02:00.0/": "",
		"linerate/ethtool.json": `{"eth0":{"driver":"iavf","bus":"0000:03:00.0","card":{"firmware_version":"8.30",` +
			`"pause":{"autonegotiated":true,"rx":true,"tx":false}},
			"statistics":{"rx_missed_errors":9,"tx_packets":5,"no_such_counter":7}}}`,
		"linerate/links.json": `[{"index":2,"name":"eth0","mtu_bytes":1500,"up":true,"carrier":false}]`,
	}
	dir := device(files, "eth0", 2, at)
	files[dir+"/napi_defer_hard_irqs"], files[dir+"/gro_flush_timeout"], files[dir+"/threaded"] = "2", "20000", "1"
	files[dir+"/queues/rx-0/rps_cpus"], files[dir+"/queues/rx-0/rps_flow_cnt"] = "f", "4096"
	files[dir+"/queues/tx-0/xps_cpus"], files[dir+"/queues/tx-0/xps_rxqs"] = "1", "3"
	files[dir+"/statistics/rx_crc_errors"], files[dir+"/statistics/rx_packets"] = "12", "100"
	s, err := tree(t, files).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dev, _ := s.Interface("eth0")
	if diff := cmp.Diff(&host.Card{
		FirmwareVersion: "8.30", PCIID: "8086:1572", Subsystem: "8086:0004", VirtualFunction: "0000:02:00.0",
		ASPM:  []string{"l1.1", "l1"},
		Pause: &host.Pause{Autoneg: true, Rx: true},
	}, dev.Card); diff != "" {
		t.Errorf("card (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&host.NAPI{DeferHardIRQs: 2, GROFlushTimeoutSeconds: 20e-6, Threaded: true},
		dev.NAPI); diff != "" {
		t.Errorf("napi (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]host.Queue{{Name: "rx-0", RPSCPUs: "f", RFSEntries: 4096},
		{Name: "tx-0", XPSCPUs: "1", XPSRxQueues: "3"}}, dev.Queues); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
	var counters []string
	for _, symptom := range dev.Symptoms {
		counters = append(counters, fmt.Sprintf("%s %d %s", symptom.Counter, symptom.Total, symptom.Class))
	}
	if diff := cmp.Diff([]string{"rx_crc_errors 12 damaged", "rx_missed_errors 9 ring-full"}, counters); diff != "" {
		t.Errorf("symptoms (-want +got):\n%s", diff)
	}
}

// platformFiles are a host with everything that surrounds a card.
func platformFiles() map[string]string {
	files := map[string]string{
		"proc/cpuinfo": "processor\t: 0\n\nprocessor\t: 1\n\nprocessor\t: 2",
		"proc/stat": "cpu  0 0 0 0 0 0 0 0\ncpu0 100 0 100 700 0 0 0 100\ncpu1 100 0 100 800 0 0 0 0\n" +
			"cpu2 0 0 0 0 0 0 0 0",
		"proc/net/stat/arp_cache":   "entries  allocs\n000001f4 00000001",
		"proc/net/stat/ndisc_cache": "entries  allocs\n00000003 00000001",
		"proc/net/sockstat":         "TCP: inuse 20 orphan 1 tw 12 alloc 30 mem 99\nUDP: inuse 5 mem 3",
		"proc/mounts":               "/dev/sda1 / ext4 rw 0 0\nfiler:/a\\040b /mnt nfs4 rw,vers=4.2,rsize=65536 0 0",
		"proc/900/comm":             "irqbalance", "proc/901/comm": "bash", "run/tuned/tuned.pid": "7",
		"etc/tuned/active_profile":                   "network-latency",
		"proc/sys/net/ipv4/neigh/default/gc_thresh3": "1024", "proc/sys/net/ipv4/tcp_mem": "1 2 300",
		"proc/sys/net/ipv4/tcp_max_orphans":       "64",
		"proc/sys/net/netfilter/nf_conntrack_max": "100", "proc/sys/net/netfilter/nf_conntrack_count": "90",
		"sys/devices/system/cpu/cpuidle/current_driver":        "intel_idle",
		"sys/devices/system/cpu/cpuidle/current_governor_ro":   "menu",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq": "2000000",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_driver":   "intel_pstate",
		"linerate/qdiscs.json": `[{"interface":"eth0","kind":"mq","parent":4294967295,"handle":0,"drops_total":3,` +
			`"requeues_total":2,"overlimits_total":1,"backlog_bytes":9},
			{"interface":"eth0","kind":"fq","parent":1,"handle":2147549184,"drops_total":3,` +
			`"requeues_total":2,"overlimits_total":1,"backlog_bytes":9},
			{"interface":"eth0","kind":"netem","parent":2147549187,"handle":2147614720,"drops_total":0,` +
			`"requeues_total":0,"overlimits_total":0,"backlog_bytes":0}]`,
	}
	for cpu := range 3 {
		for n, name := range []string{"POLL", "C6"} {
			dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpuidle/state%d/", cpu, n)
			files[dir+"name"], files[dir+"latency"], files[dir+"disable"] = name, fmt.Sprint(133*n),
				fmt.Sprint(n*(cpu%2))
		}
	}
	return files
}

func TestPlatform(t *testing.T) {
	root := tree(t, platformFiles())
	s, err := root.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lost := host.QdiscState{Drops: 3, Requeues: 2, Overlimits: 1, BacklogBytes: 9}
	want := host.Platform{
		Qdiscs: []host.Qdisc{
			{Interface: "eth0", Kind: "mq", Parent: "root", QdiscState: lost},
			{Interface: "eth0", Kind: "fq", Handle: "8001:", Parent: ":1", QdiscState: lost},
			{Interface: "eth0", Kind: "netem", Handle: "8002:", Parent: "8001:3"},
		},
		Idle: &host.Idle{Driver: "intel_idle", Governor: "menu",
			States: []host.IdleState{{Name: "POLL"}, {Name: "C6", LatencySeconds: 133e-6, Disabled: "1"}}},
		Tables: []host.Table{
			{Name: "conntrack", Entries: 90, Limit: 100}, {Name: "neighbours-ipv4", Entries: 500, Limit: 1024},
			{Name: "neighbours-ipv6", Entries: 3},
			{Name: "tcp-sockets", Entries: 20}, {Name: "tcp-orphans", Entries: 1, Limit: 64},
			{Name: "tcp-time-wait", Entries: 12},
			{Name: "tcp-memory", Entries: 99, Limit: 300}, {Name: "udp-sockets", Entries: 5},
			{Name: "udp-memory", Entries: 3},
		},
		Mounts: []host.Mount{{Source: "filer:/a b", Path: "/mnt", Type: "nfs4", Options: "rw,vers=4.2,rsize=65536"}},
		Owners: []owner.Owner{
			{Name: "irqbalance", Running: true, Manages: "interrupt affinity", Marks: "process irqbalance"},
			{Name: "tuned", Manages: "sysctls, rings, channels, coalescing, governors and idle states, by profile",
				Profile: "network-latency", Marks: "/run/tuned/tuned.pid"},
		},
	}
	if diff := cmp.Diff(want, s.Platform); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := s.CPUs[0]; c.StealRatio != 0.1 || c.LimitMHz != 2000 || c.FrequencyDriver != "intel_pstate" ||
		s.CPUs[1].StealRatio != 0 {
		t.Errorf("processors %+v", s.CPUs)
	}
	// An archive of it has the file server and irqbalance in it, and neither the other mounts nor
	// the names of other programs.
	entries := copied(t, root)
	second, err := inMemory(entries).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Platform, second.Platform); diff != "" {
		t.Errorf("copied (-first +second):\n%s", diff)
	}
	for _, e := range entries {
		if strings.Contains(string(e.Content), "ext4") || strings.Contains(string(e.Content), "bash") {
			t.Errorf("%s holds %q", e.Name, e.Content)
		}
	}
}
