package plan

import (
	"strings"

	"github.com/linerate/linerate/internal/change/advice"
)

// setting is one of an old write-up.
type setting struct {
	knob, value string
	buffer      bool   // it sizes buffers of connections
	routes      bool   // Windows before Vista reads it on a host that routes
	now         string // the setting of today for the same purpose; empty: the same
	needs       string // why the plan leaves it out although it still works; empty: the usual reason
}

// fromWriteUps are the settings that the write-ups of 2005 to 2010 made, with their values: gigabit
// NICs on FreeBSD, Linux and Windows, polling on a FreeBSD firewall, parameters of e1000, buffers
// and frames on Solaris, and options of BIND.
//
// Columns are separated by bars: the systems, the setting, its value, b for a size of buffers
// or r for a queue of old routers, a letter of reasons, and today's setting for the same purpose.
const fromWriteUps = `freebsd|sysctl:kern.ipc.maxsockbuf|262144|b||
freebsd|sysctl:net.inet.tcp.sendspace|65536|b|f|sysctl:net.inet.tcp.sendbuf_max
freebsd|sysctl:net.inet.tcp.recvspace|65536|b|f|sysctl:net.inet.tcp.recvbuf_max
freebsd|sysctl:net.inet.tcp.rfc1323|1|||
freebsd|sysctl:kern.ipc.nmbclusters|32768||n|
freebsd|option:DEVICE_POLLING|yes||k|
freebsd|option:HZ|1500||k|sysctl:kern.hz
freebsd|option:HZ|2500||k|sysctl:kern.hz
freebsd|sysctl:kern.polling.user_frac|30||k|
freebsd|sysctl:kern.polling.burst_max|300||w|
linux|sysctl:net.core.wmem_max|8388608|b|p|
linux|sysctl:net.core.rmem_max|4194304|b|p|
linux|sysctl:net.core.wmem_max|4194304|b|p|
linux|sysctl:net.core.wmem_default|65536|b||
linux|sysctl:net.core.rmem_default|65536|b||
linux|sysctl:net.ipv4.tcp_window_scaling|1|||
linux|sysctl:net.ipv4.tcp_mem|98304 131072 196608|b||
linux|sysctl:net.ipv4.tcp_rmem|40960 1048560 4194304|b|t|
linux|sysctl:net.ipv4.tcp_wmem|40960 196608 4194304|b|t|
linux|module:e1000/InterruptThrottleRate|0||e|
linux|module:e1000/InterruptThrottleRate|3000,3000,3000||i|
linux|module:e1000/RxIntDelay|0||e|
linux|module:e1000/XsumRX|0||e|
linux|module:e1000/RxDescriptors|4096||m|
linux|link:*/mtu|9000||s|
solaris|ndd:tcp/tcp_xmit_hiwat|983040|b||ipadm:tcp/send_buf
solaris|ndd:tcp/tcp_recv_hiwat|983040|b||ipadm:tcp/recv_buf
solaris|ndd:tcp/tcp_max_buf|4194304|b||ipadm:tcp/max_buf
solaris|driver:e1000g/MaxFrameSize|0,3,0,0,0,0,0,0,0,0,0,0,0,0,0,0||s|
solaris|dladm:*/mtu|9000||s|link:*/mtu
windows|registry:` + tcpip + `\TcpWindowSize|131400|b||
windows|registry:` + tcpip + `\Tcp1323Opts|3|||
windows|registry:` + tcpip + `\ForwardBufferMemory|80000|r||
windows|registry:` + tcpip + `\NumForwardPackets|60000|r||
windows|service:SharedAccess|disabled|||
bind|named:recursive-clients|1000000||a|
bind|named:lame-ttl|900||a|
bind|named:max-cache-size|100K||a|
bind|named:max-ncache-ttl|60||a|
bind|named:max-cache-ttl|60||a|
bind|named:cleaning-interval|1||a|`

// reasons are the letters of fromWriteUps.
var reasons = map[string]string{
	"p": "Only programs that ask for a size of their own are bounded by it.",
	"s": "Every host and every switch of the segment must take such frames: `mtu: 9000` in the file asks for it.",
	"k": "It serves hosts that forward packets, and needs a kernel with polling.",
	"f": "It is the first size only, and grows as needed.",
	"n": "Raise it where netstat -m counts denied requests; packets on their way through a host are in clusters too.",
	"w": "The write-up took it back: more packets for each tick than the CPU could process made it worse.",
	"t": "The first two numbers cost memory in every connection, and this path does not need the third.",
	"e": "It is for NICs of the driver e1000 alone, and for small requests.",
	"i": "It is for NICs of the driver e1000 alone, where several of them carry bulk traffic.",
	"m": "It is for NICs of the driver e1000 alone, while they count missed packets.",
	"a": "It makes no answer faster.",
}

// writeUps returns the settings of the write-ups for a situation.
func writeUps(s Situation) []setting {
	system := string(s.System.OS)
	if system == string(advice.Illumos) {
		system = string(advice.Solaris)
	}
	var all []setting
	for _, line := range strings.Split(fromWriteUps, "\n") {
		f := strings.Split(line, "|")
		bind := f[0] == "bind" && s.Role == Nameserver && s.System.OS != advice.Windows
		other := strings.HasPrefix(f[1], "module:e1000/") && s.Driver != "" && s.Driver != "e1000"
		if f[0] != system && !bind || other {
			continue
		}
		if s.Interface != "" {
			f[1] = strings.Replace(f[1], ":*/", ":"+s.Interface+"/", 1)
			f[5] = strings.Replace(f[5], ":*/", ":"+s.Interface+"/", 1)
		}
		all = append(all, setting{knob: f[1], value: f[2], buffer: f[3] == "b", routes: f[3] == "r",
			needs: reasons[f[4]], now: f[5]})
	}
	return all
}
