package host

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/kernel/mib"
	"github.com/linerate/linerate/internal/kernel/tool"
)

// tape plays a machine; its lines have the form of the sources that the packages below name.
func tape(t *testing.T, text string) *tool.Tape {
	t.Helper()
	played, err := tool.ParseTape([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return played
}

const bsdTape = `# FreeBSD 12.1 with an em card
$ ifconfig -m
| em0: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 1500
| 	options=481249b<RXCSUM,TXCSUM,VLAN_MTU,LRO>
| 	capabilities=4f1259b<RXCSUM,TXCSUM,VLAN_MTU,TSO4,LRO>
| 	media: Ethernet autoselect (1000baseT <full-duplex>)
| 	status: active
$ netstat --libxo json -ibn
| {"statistics": {"interface": [{"name":"em0","flags":"0x8863","mtu":1500,"network":"<Link#1>",
| "address":"00:00:5e:00:53:56","received-packets":1000,"received-errors":640,"dropped-packets":3,
| "received-bytes":90000,"sent-packets":800,"send-errors":0,"sent-bytes":70000,"collisions":0}]}}
$ netstat --libxo json -s
> {"statistics":{"tcp":{"sent-packets":1000,"sent-retransmitted-packets":50},"udp":{"dropped-full-socket-buffer":5}}}
$ vmstat --libxo json -i
> {"__version":"1","interrupt-statistics":{"interrupt":[{"name":"irq1: atkbd0 ","total":6,"rate":0},
> {"name":"cpu0:timer","total":99,"rate":9},{"name":"irq264: em0:rxq0","total":3028517,"rate":9},
> {"name":"irq265: em0:aq ","total":2,"rate":0}]},"total-interrupts":3028624}
`

func TestFreeBSDSnapshot(t *testing.T) {
	tree := mib.ParseDump("kern.osrelease: 14.2-RELEASE\nhw.physmem: 2087968768\nkern.vm_guest: none\nhw.model: A CPU\n" +
		"net.inet.tcp.rfc1323: 1\ndev.em.0.mac_stats.missed_packets: 600\ndev.em.0.mac_stats.crc_errs: 40\n" +
		"kern.cp_times: 1280 0 256 128 12800 2560 0 0 0 12800\n")
	s := &Snapshot{Interfaces: []Interface{{Name: "em0", Carrier: true}, {Name: "lo0"}}, CPUs: []CPU{{}}}
	var said notes
	completeFreeBSD(t.Context(), s, tape(t, bsdTape), tree, &said)
	em := s.Interfaces[0]
	if s.Kernel != "14.2-RELEASE" || s.MemoryBytes != 2087968768 || s.Virtualization != "" || s.CPUs[0].Model != "A CPU" ||
		len(s.Settings) != 1 || len(said.sentences) != 0 {
		t.Errorf("%+v %v", s, said.sentences)
	}
	if em.Driver != "em" || em.SpeedBitsPerSec != 1e9 || em.Duplex != "full" || !em.Features["lro"].On ||
		em.Features["tso4"].On || em.Counters["rx_missed_errors"] != 600 || em.Counters["rx_crc_errors"] != 40 {
		t.Errorf("%+v", em)
	}
	if d := cmp.Diff([]Interrupt{{Number: 264, Name: "em0:rxq0", Counts: []CPUCount{{CPU: AllCPUs, Total: 3028517}}},
		{Number: 265, Name: "em0:aq", Counts: []CPUCount{{CPU: AllCPUs, Total: 2}}}}, em.Interrupts); d != "" {
		t.Error(d)
	}
	c, err := countFreeBSD(t.Context(), tape(t, bsdTape), tree)
	if err != nil || c.Values["Tcp.RetransSegs"] != 50 || c.Values["Udp.RcvbufErrors"] != 5 ||
		c.Values["nic.em0.rx_errors"] != 640 || len(c.CPUs) != 2 || c.CPUs[1].User != 20 || c.CPUs[0].IRQ != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

const sunTape = `# illumos with an e1000g card
$ ipadm show-prop -c -o PROPERTY,CURRENT -p max_buf,send_buf,recv_buf,_cwnd_max,sack,ecn tcp
| max_buf:1048576
| send_buf:49152
| sack:active
$ dladm show-phys -p -o LINK,DEVICE
| net0:e1000g0
$ kstat -p
| unix:0:system_pages:physmem	524288
| link:0:net0:rbytes64	90000
| link:0:net0:ierrors	12
| link:0:net0:ifspeed	1000000000
| link:0:net0:link_duplex	2
| e1000g:0:statistics:Recv_Missed_Packets	9
| e1000g:0:mac:fcs_errors	3
| tcp:0:tcp:retransSegs	77
`

func TestSolarisSnapshot(t *testing.T) {
	s := &Snapshot{Interfaces: []Interface{{Name: "net0"}}}
	var said notes
	completeSolaris(t.Context(), s, tape(t, sunTape), &said)
	dev := s.Interfaces[0]
	if len(s.Settings) != 3 || s.Settings[1] != (Setting{"ipadm:tcp/send_buf", "49152"}) || s.MemoryBytes == 0 ||
		dev.Driver != "e1000g" || dev.SpeedBitsPerSec != 1e9 || dev.Duplex != "full" ||
		dev.Counters["rx_missed_errors"] != 9 ||
		dev.Counters["rx_crc_errors"] != 3 || dev.Counters["rx_errors"] != 12 || len(said.sentences) != 0 {
		t.Errorf("%+v %v", s, said.sentences)
	}
	c, err := countSolaris(t.Context(), tape(t, sunTape))
	if err != nil || c.Values["Tcp.RetransSegs"] != 77 || c.Values["nic.net0.rx_missed_errors"] != 9 {
		t.Errorf("%+v, %v", c, err)
	}
}

// pane answers pipelines by their first word.
func pane(answers map[string]string) tool.Runner { return answering(answers) }

func TestWindowsSnapshot(t *testing.T) {
	run := pane(map[string]string{
		"Get-NetAdapter ": `{"ok":true,"rows":[{"Name":"イーサネット","DriverName":"e1d","FullDuplex":true,` +
			`"Speed":2500000000,"Physical":"True"}]}`,
		"Get-NetAdapterStatistics ": `{"ok":true,"rows":{"Name":"イーサネット","ReceivedBytes":90000,` +
			`"ReceivedDiscardedPackets":4,` +
			`"ReceivedPacketErrors":2,"OutboundDiscardedPackets":0}}`,
		"Get-NetTCPSetting ": `{"ok":true,"rows":[{"SettingName":"Internet","AutoTuningLevelLocal":"Normal",` +
			`"CongestionProvider":"CUBIC"}]}`,
	})
	s := &Snapshot{Interfaces: []Interface{{Name: "イーサネット", Carrier: true}}}
	var said notes
	completeWindows(t.Context(), s, run, &said)
	dev := s.Interfaces[0]
	if dev.SpeedBitsPerSec != 2.5e9 || dev.Duplex != "full" || dev.Counters["rx_dropped"] != 4 || len(s.Settings) != 2 ||
		len(said.sentences) != 0 {
		t.Errorf("%+v %v", s, said.sentences)
	}
	if c, err := countWindows(t.Context(), run); err != nil || c.Values["nic.イーサネット.rx_dropped"] != 4 {
		t.Errorf("%+v, %v", c, err)
	}
}

// A program that is missing, or prints nothing and succeeds, leaves a sentence and no zero.
func TestNothingReadIsSaid(t *testing.T) {
	absent := tape(t, "$ ifconfig -m\n? absent\n$ netstat --libxo json -ibn\n$ vmstat --libxo json -i\n$ kstat -p\n"+
		"$ dladm show-phys -p -o LINK,DEVICE\n"+
		"$ ipadm show-prop -c -o PROPERTY,CURRENT -p max_buf,send_buf,recv_buf,_cwnd_max,sack,ecn tcp\n? 1\n! ipadm: no\n")
	for name, read := range map[string]func(*Snapshot, *notes){
		"freebsd": func(s *Snapshot, n *notes) { completeFreeBSD(t.Context(), s, absent, mib.ParseDump(""), n) },
		"solaris": func(s *Snapshot, n *notes) { completeSolaris(t.Context(), s, absent, n) },
		"windows": func(s *Snapshot, n *notes) { completeWindows(t.Context(), s, pane(nil), n) },
	} {
		s, said := &Snapshot{Interfaces: []Interface{{Name: "em0"}}}, notes{}
		read(s, &said)
		if len(said.sentences) < 2 || len(s.Interfaces[0].Counters) != 0 || len(s.Settings) != 0 {
			t.Errorf("%s: %q %+v", name, said.sentences, s)
		}
	}
	if c, err := countFreeBSD(t.Context(), absent, mib.ParseDump("")); err == nil {
		t.Errorf("%+v", c)
	}
	if c, err := countWindows(t.Context(), pane(nil)); err == nil || !strings.Contains(err.Error(), "PowerShell") {
		t.Errorf("%+v, %v", c, err)
	}
}

// answering is PowerShell with an answer for each first word of a pipeline, and nothing for others.
type answering map[string]string

func (a answering) Run(_ context.Context, _ string, args ...string) ([]byte, error) {
	_, pipeline, _ := strings.Cut(args[len(args)-1], "$r=@(")
	for first, answer := range a {
		if strings.HasPrefix(pipeline, first) {
			return []byte(answer), nil
		}
	}
	return nil, nil
}
