package host

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/host/freebsd"
	"github.com/linerate/linerate/internal/host/solaris"
	"github.com/linerate/linerate/internal/host/windows"
	"github.com/linerate/linerate/internal/kernel/mib"
	"github.com/linerate/linerate/internal/kernel/tool"
)

// Interfaces of other systems keep the names that Linux has for the same counts, so that documents
// of all systems can be compared; what a system does not count is absent.
const (
	rxPackets = "rx_packets"
	rxBytes   = "rx_bytes"
	rxErrors  = "rx_errors"
	rxDropped = "rx_dropped"
	rxMissed  = "rx_missed_errors" // found no room in the card
	rxCRC     = "rx_crc_errors"    // damaged on the wire
	rxFIFO    = "rx_fifo_errors"
	txPackets = "tx_packets"
	txBytes   = "tx_bytes"
	txErrors  = "tx_errors"
	txDropped = "tx_dropped"
)

// named returns the interface with a name, or nil.
func (s *Snapshot) named(name string) *Interface {
	for i := range s.Interfaces {
		if s.Interfaces[i].Name == name {
			return &s.Interfaces[i]
		}
	}
	return nil
}

// freebsdSettings are the sysctls of a snapshot.
var freebsdSettings = []string{"kern.ipc.maxsockbuf", "kern.ipc.nmbclusters", "kern.ipc.soacceptqueue", "kern.hz",
	"net.inet.tcp.sendspace", "net.inet.tcp.recvspace", "net.inet.tcp.sendbuf_max", "net.inet.tcp.recvbuf_max",
	"net.inet.tcp.sendbuf_auto", "net.inet.tcp.recvbuf_auto", "net.inet.tcp.rfc1323", "net.inet.tcp.cc.algorithm",
	"net.inet.tcp.tso", "net.inet.tcp.sack.enable", "net.inet.tcp.functions_default", "net.isr.dispatch",
	"net.isr.maxthreads", "kern.polling.user_frac", "kern.polling.burst_max", "kern.polling.each_burst"}

// freebsdCards are the settings and counters of one card below dev.DRIVER.UNIT.
var freebsdCards = []string{"mac_stats.missed_packets", "mac_stats.recv_no_buff", "mac_stats.crc_errs",
	"mac_stats.alignment_errs", "mac_stats.recv_errs", "mac_stats.recv_undersize", "mac_stats.recv_oversize",
	"mac_stats.coll_ext_errs", "mac_stats.xoff_recvd", "mac_stats.xoff_txd", "rx_overruns", "dropped"}

// completeFreeBSD adds what a FreeBSD kernel and its programs report.
func completeFreeBSD(ctx context.Context, s *Snapshot, run tool.Runner, tree mib.Tree, said *notes) {
	text := func(name string) string {
		n, err := tree.Get(name)
		if err != nil {
			return ""
		}
		return n.Value
	}
	s.Kernel = text("kern.osrelease")
	s.MemoryBytes, _ = strconv.ParseInt(text("hw.physmem"), 10, 64) // 0: not known
	if guest := text("kern.vm_guest"); guest != "none" {
		s.Virtualization = guest
	}
	for i := range s.CPUs {
		s.CPUs[i].Model = text("hw.model")
	}
	for _, name := range freebsdSettings {
		if v := text(name); v != "" {
			s.Settings = append(s.Settings, Setting{Knob: "sysctl:" + name, Value: v})
		}
	}
	out, err := run.Run(ctx, "ifconfig", "-m")
	said.add("options of interfaces (ifconfig)", err)
	for _, found := range freebsd.ParseIfconfig(string(out)) {
		i := s.named(found.Name)
		if i == nil {
			continue
		}
		i.Driver = strings.TrimRight(found.Name, "0123456789")
		i.Features = map[string]Feature{}
		for _, word := range []string{"rxcsum", "txcsum", "rxcsum6", "txcsum6", "tso4", "tso6", "lro", "vlanhwtag",
			"polling"} {
			if on, able, known := found.Option(word); known && (on || able) {
				i.Features[word] = Feature{On: on}
			}
		}
		i.SpeedBitsPerSec, i.Duplex = found.Speed()
		i.Carrier = i.Carrier && found.Status != "no carrier"
	}
	traffic, err := freebsdTraffic(ctx, run)
	said.add("counters of interfaces (netstat)", err)
	for _, t := range traffic {
		if i := s.named(t.Name); i != nil {
			i.Counters = freebsdCounts(tree, t)
		}
	}
	said.add("interrupts (vmstat)", freebsdInterrupts(ctx, s, run))
}

// freebsdInterrupts adds the interrupts of every interface, "irq268: em0:rxq0" in vmstat, which
// counts those of all CPUs in one.
func freebsdInterrupts(ctx context.Context, s *Snapshot, run tool.Runner) error {
	out, err := run.Run(ctx, "vmstat", "--libxo", "json", "-i")
	if err != nil {
		return err
	}
	all, err := freebsd.ParseInterrupts(out)
	for _, f := range all {
		number, name, named := strings.Cut(strings.TrimPrefix(f.Name, "irq"), ": ")
		n, err := strconv.Atoi(number)
		if !named || err != nil {
			continue // cpu0:timer, total
		}
		card, _, _ := strings.Cut(strings.Fields(name + " ")[0], ":")
		if i := s.named(card); i != nil {
			i.Interrupts = append(i.Interrupts, Interrupt{Number: n, Name: name,
				Counts: []CPUCount{{CPU: AllCPUs, Total: f.Total}}})
		}
	}
	return err
}

func freebsdTraffic(ctx context.Context, run tool.Runner) ([]freebsd.Traffic, error) {
	out, err := run.Run(ctx, "netstat", "--libxo", "json", "-ibn")
	if err != nil {
		return nil, err
	}
	return freebsd.ParseInterfaces(out)
}

// freebsdCounts are the counts of one interface. The driver's own counters separate packets that
// found no room from damaged ones: em adds both to the errors of netstat.
func freebsdCounts(tree mib.Tree, t freebsd.Traffic) map[string]uint64 {
	counts := map[string]uint64{rxPackets: t.RxPackets, rxBytes: t.RxBytes, rxErrors: t.RxErrors, rxDropped: t.RxDropped,
		txPackets: t.TxPackets, txBytes: t.TxBytes, txErrors: t.TxErrors, "collisions": t.Collisions}
	driver := strings.TrimRight(t.Name, "0123456789")
	own := make(map[string]string)
	for _, name := range freebsdCards {
		if n, err := tree.Get("dev." + driver + "." + strings.TrimPrefix(t.Name, driver) + "." + name); err == nil {
			own[name] = n.Value
		}
	}
	if card, ok := freebsd.CardCounters(own, t.RxErrors); ok {
		counts[rxMissed], counts[rxCRC], counts[rxFIFO] = card.Missed, card.CRC, card.Overruns
		counts["rx_no_buffer"], counts["rx_pause"], counts["tx_pause"] = card.NoBuffer, card.PauseIn, card.PauseOut
	}
	return counts
}

// freebsdNames are the counts of netstat -s under the names that Linux has for them.
var freebsdNames = map[string]string{"tcp.sent-packets": "Tcp.OutSegs", "tcp.received-packets": "Tcp.InSegs",
	"tcp.sent-retransmitted-packets": "Tcp.RetransSegs", "tcp.retransmit-timeouts": "TcpExt.TCPTimeouts",
	"tcp.listen-queue-overflows": "TcpExt.ListenOverflows", "tcp.received-out-of-order": "TcpExt.TCPOFOQueue",
	"tcp.connection-requests": "Tcp.ActiveOpens", "tcp.connections-accepts": "Tcp.PassiveOpens",
	"udp.received-datagrams": "Udp.InDatagrams", "udp.dropped-full-socket-buffer": "Udp.RcvbufErrors",
	"udp.dropped-no-socket": "Udp.NoPorts", "udp.output-packets": "Udp.OutDatagrams",
	"ip.received-packets": "Ip.InReceives"}

// countFreeBSD takes one reading of the counters.
func countFreeBSD(ctx context.Context, run tool.Runner, tree mib.Tree) (*Counters, error) {
	var said notes
	c := &Counters{Time: time.Now(), Values: make(map[string]uint64)}
	traffic, err := freebsdTraffic(ctx, run)
	if err != nil {
		return nil, err
	}
	for _, t := range traffic {
		for name, n := range freebsdCounts(tree, t) {
			c.Values["nic."+t.Name+"."+name] = n
		}
	}
	out, err := run.Run(ctx, "netstat", "--libxo", "json", "-s")
	var counts map[string]uint64
	if err == nil {
		counts, err = freebsd.ParseProtocols(out)
	}
	said.add("counters of protocols (netstat)", err)
	for name, as := range freebsdNames {
		if n, ok := counts[name]; ok {
			c.Values[as] = n
		}
	}
	// Times of all CPUs in ticks of the statistics clock, five for each: user, nice, system,
	// interrupt, idle.
	const ticks, kinds = 128.0, 5
	if n, err := tree.Get("kern.cp_times"); err == nil {
		f := strings.Fields(n.Value)
		for at := 0; at+kinds <= len(f); at += kinds {
			var seconds [kinds]float64
			for i := range seconds {
				v, _ := strconv.ParseUint(f[at+i], 10, 64) // 0: not a number
				seconds[i] = float64(v) / ticks
			}
			c.CPUs = append(c.CPUs, CPUTimes{CPU: at / kinds, User: seconds[0] + seconds[1], Nice: seconds[1],
				System: seconds[2], IRQ: seconds[3], Idle: seconds[4]})
		}
	}
	c.Warnings = said.sentences
	return c, nil
}

// solarisSettings are the properties of ipadm in a snapshot.
var solarisSettings = []string{"max_buf", "send_buf", "recv_buf", "_cwnd_max", "sack", "ecn"}

// completeSolaris adds what the programs of illumos and Solaris report.
func completeSolaris(ctx context.Context, s *Snapshot, run tool.Runner, said *notes) {
	out, err := run.Run(ctx, "ipadm", "show-prop", "-c", "-o", "PROPERTY,CURRENT", "-p",
		strings.Join(solarisSettings, ","), "tcp")
	said.add("properties of TCP (ipadm)", err)
	for line := range strings.Lines(string(out)) {
		if f := solaris.Fields(line); len(f) == 2 && f[0] != "" && f[1] != "" {
			s.Settings = append(s.Settings, Setting{Knob: "ipadm:tcp/" + f[0], Value: f[1]})
		}
	}
	counts, devices, err := solarisCounts(ctx, run)
	said.add("counters of links (kstat)", err)
	if pages := counts["unix:0:system_pages:physmem"]; pages > 0 {
		s.MemoryBytes = int64(pages) * int64(os.Getpagesize())
	}
	for i := range s.Interfaces {
		dev := &s.Interfaces[i]
		if device := devices[dev.Name]; device != "" {
			dev.Driver = strings.TrimRight(device, "0123456789")
		}
		prefix := "link:0:" + dev.Name + ":"
		dev.SpeedBitsPerSec = float64(counts[prefix+"ifspeed"])
		dev.Duplex = map[uint64]string{1: "half", 2: "full"}[counts[prefix+"link_duplex"]]
		if c := solarisLink(counts, dev.Name, devices[dev.Name]); len(c) > 0 {
			dev.Counters = c
		}
	}
}

// solarisCounts reads the kernel's statistics, and which device is below each link.
func solarisCounts(ctx context.Context, run tool.Runner) (map[string]uint64, map[string]string, error) {
	devices := make(map[string]string)
	out, err := run.Run(ctx, "dladm", "show-phys", "-p", "-o", "LINK,DEVICE")
	if err == nil {
		for line := range strings.Lines(string(out)) {
			if f := solaris.Fields(line); len(f) == 2 {
				devices[f[0]] = f[1]
			}
		}
	}
	// One call for all: modules and classes that are not there print nothing.
	if out, err = run.Run(ctx, "kstat", "-p"); err != nil {
		return nil, devices, err
	}
	counts, err := solaris.ParseKstat(string(out))
	return counts, devices, err
}

// solarisLink are the counts of one link and of the card below it.
func solarisLink(counts map[string]uint64, link, device string) map[string]uint64 {
	out := make(map[string]uint64)
	for _, name := range [][2]string{{"rbytes64", rxBytes}, {"ipackets64", rxPackets}, {"ierrors", rxErrors},
		{"norcvbuf", rxDropped}, {"obytes64", txBytes}, {"opackets64", txPackets}, {"oerrors", txErrors},
		{"noxmtbuf", txDropped}} {
		if n, ok := counts["link:0:"+link+":"+name[0]]; ok {
			out[name[1]] = n
		}
	}
	driver := strings.TrimRight(device, "0123456789")
	if card, ok := solaris.CardCounters(counts, driver+":"+strings.TrimPrefix(device, driver)); ok && device != "" {
		out[rxMissed], out[rxCRC] = card.Missed, card.CRC
		out["rx_no_buffer"], out["rx_pause"], out["tx_pause"] = card.NoBuffer, card.PauseIn, card.PauseOut
	}
	return out
}

// countSolaris takes one reading of the counters.
func countSolaris(ctx context.Context, run tool.Runner) (*Counters, error) {
	counts, devices, err := solarisCounts(ctx, run)
	if err != nil {
		return nil, err
	}
	c := &Counters{Time: time.Now(), Values: make(map[string]uint64)}
	for link, device := range devices {
		for name, n := range solarisLink(counts, link, device) {
			c.Values["nic."+link+"."+name] = n
		}
	}
	for name, as := range map[string]string{"tcp:0:tcp:outDataSegs": "Tcp.OutSegs",
		"tcp:0:tcp:retransSegs": "Tcp.RetransSegs",
		"tcp:0:tcp:listenDrop":  "TcpExt.ListenOverflows", "udp:0:udp:inOverflows": "Udp.RcvbufErrors",
		"udp:0:udp:inDatagrams": "Udp.InDatagrams"} {
		if n, ok := counts[name]; ok {
			c.Values[as] = n
		}
	}
	return c, nil
}

// windowsAdapters and windowsStatistics ask for objects; their names are those of the modules.
const (
	windowsAdapters = "Get-NetAdapter -IncludeHidden | Select-Object Name,InterfaceDescription,DriverName,FullDuplex," +
		"@{n='Speed';e={[uint64]$_.ReceiveLinkSpeed}},@{n='Physical';e={[string][bool]$_.HardwareInterface}}"
	windowsStatistics = "Get-NetAdapterStatistics | Select-Object Name,ReceivedBytes,ReceivedUnicastPackets," +
		"ReceivedPacketErrors,ReceivedDiscardedPackets,SentBytes,SentUnicastPackets,OutboundPacketErrors," +
		"OutboundDiscardedPackets"
	windowsTemplates = "Get-NetTCPSetting | Where-Object {$_.SettingName -ne 'Automatic'} | Select-Object SettingName," +
		"@{n='AutoTuningLevelLocal';e={[string]$_.AutoTuningLevelLocal}}," +
		"@{n='CongestionProvider';e={[string]$_.CongestionProvider}}"
)

func askWindows(ctx context.Context, run tool.Runner, pipeline string) ([]windows.Row, error) {
	out, err := run.Run(ctx, windows.Program, windows.Arguments(pipeline)...)
	if err != nil {
		return nil, err
	}
	return windows.ParseAnswer(out)
}

// completeWindows adds what PowerShell's modules report.
func completeWindows(ctx context.Context, s *Snapshot, run tool.Runner, said *notes) {
	rows, err := askWindows(ctx, run, windowsAdapters)
	said.add("adapters (Get-NetAdapter)", err)
	for _, r := range rows {
		i := s.named(r.Text("Name"))
		if i == nil {
			continue
		}
		i.Driver = r.Text("DriverName")
		i.Virtual = i.Virtual || strings.EqualFold(r.Text("Physical"), "false")
		if bits, ok := r.Number("Speed"); ok && i.Carrier {
			i.SpeedBitsPerSec = float64(bits)
		}
		if duplex := r.Text("FullDuplex"); duplex == "true" {
			i.Duplex = "full"
		} else if duplex == "false" {
			i.Duplex = "half"
		}
	}
	rows, err = askWindows(ctx, run, windowsStatistics)
	said.add("counters of adapters (Get-NetAdapterStatistics)", err)
	for _, r := range rows {
		if i := s.named(r.Text("Name")); i != nil {
			i.Counters = windowsCounts(r)
		}
	}
	rows, err = askWindows(ctx, run, windowsTemplates)
	said.add("TCP settings (Get-NetTCPSetting)", err)
	for _, r := range rows {
		for _, name := range []string{"AutoTuningLevelLocal", "CongestionProvider"} {
			if v := r.Text(name); v != "" && r.Text("SettingName") != "" {
				s.Settings = append(s.Settings, Setting{Knob: "nettcp:" + r.Text("SettingName") + "/" + name, Value: v})
			}
		}
	}
}

func windowsCounts(r windows.Row) map[string]uint64 {
	out := make(map[string]uint64)
	for _, name := range [][2]string{{"ReceivedBytes", rxBytes}, {"ReceivedUnicastPackets", rxPackets},
		{"ReceivedPacketErrors", rxErrors}, {"ReceivedDiscardedPackets", rxDropped}, {"SentBytes", txBytes},
		{"SentUnicastPackets", txPackets}, {"OutboundPacketErrors", txErrors}, {"OutboundDiscardedPackets", txDropped}} {
		if n, ok := r.Number(name[0]); ok {
			out[name[1]] = n
		}
	}
	return out
}

// countWindows takes one reading of the counters.
func countWindows(ctx context.Context, run tool.Runner) (*Counters, error) {
	rows, err := askWindows(ctx, run, windowsStatistics)
	if err != nil {
		return nil, err
	}
	c := &Counters{Time: time.Now(), Values: make(map[string]uint64)}
	for _, r := range rows {
		for name, n := range windowsCounts(r) {
			c.Values["nic."+r.Text("Name")+"."+name] = n
		}
	}
	return c, nil
}
