package reporttest

import (
	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/storage"
	"github.com/linerate/linerate/internal/traffic"
)

// diagnosis is a verdict on a path with everything that a document may have.
func diagnosis() *report.DiagnoseDocument {
	findings := findings()
	limit := &findings[0]
	limit.Remedy.Proof = "Measure with the new and the old value alternately: the rate must grow by as much " +
		"as the window, and the idle round trip must stay."
	limit.Evidence = append(limit.Evidence, []evidence.Evidence{
		{Name: "congestion window, mean", Value: 812e3, Unit: "bytes", Source: "tcp_info tcpi_snd_cwnd (near)"},
		{Name: "rate that this window allows", Value: 231.3e6, Unit: "bits_per_second",
			Source: "window / round trip under load"},
		{Name: "receive buffer", Value: 1048576.0, Unit: "bytes", Source: "SO_RCVBUF (far)"},
		{Name: "net.ipv4.tcp_rmem", Value: "4096 87380 1048576", Source: "sysctl (far)"},
	}...)
	limit.Rejected = append(limit.Rejected,
		"Not the processors: the busiest (CPU 0 at near) was busy 12 % of the time.",
		"Not a slower link with a queue: the round trip under load is 20.4 ms, empty 20.1 ms.",
		"Not the congestion window (bbr): it was 793 KiB, with 575 KiB in flight.")
	second := evidence.Finding{
		Code: evidence.UDPSocketOverflow, Severity: evidence.Warning, Confidence: 0.8, Where: "far",
		Title: "1.2 % of the datagrams for port 514 of the far host were dropped: the socket buffer was full.",
		Evidence: []evidence.Evidence{{Name: "refused", Value: 5210.0, Unit: "packets",
			Source: "Udp.RcvbufErrors (far)"}},
		Remedy: evidence.Remedy{
			Text: "Let the program read faster, or raise net.core.rmem_max and the buffer that it requests."},
	}
	blind := []diagnose.Blind{
		{What: "the probe mtu", Why: "icmp echo: no answer to 3 packets", Lowers: 0.1},
		{What: "eth0 rings, eth0 coalesce (far)", Why: "not permitted: ethtool rings: operation not permitted",
			Lowers: 0.1, Of: []evidence.Code{evidence.Healthy}},
		{What: "eth0 pause (near)", Why: "not supported: operation not supported", Lowers: 0.05},
		{What: "eth0 pause (far)", Why: "not supported: operation not supported", Lowers: 0.05},
	}
	streams := Tests()[2]
	streams.Streams, streams.StartTime = 8, Noon.Add(5e9)
	paced := Tests()[2]
	paced.StartTime = Noon.Add(3e9)
	c := evidence.Case{
		Runs:    Tests(),
		Probes:  map[evidence.Probe]traffic.Result{evidence.ProbeStreams: streams, evidence.ProbePaced: paced},
		Refused: map[evidence.Probe]string{evidence.ProbeMTU: "icmp echo: no answer to 3 packets"},
	}
	d := report.NewDiagnose(Envelope(), "192.0.2.7:7070", c, []evidence.Finding{findings[0], second, findings[1]}, blind)
	d.Copy = storage.NewCopy("/srv", 231e6, &storage.Result{Test: storage.SequentialRead, ThroughputBytesPerSec: 210e6,
		Verdict: storage.Verdict{Whose: storage.Device}})
	return d
}

// passive is a verdict on a host without a load.
func passive() *report.DiagnoseDocument {
	quiet := evidence.Finding{
		Code: evidence.Healthy, Severity: evidence.Info, Confidence: 0.6, Where: "near",
		Title: "No fault showed in 3.00 s, in which this host moved 412 Mb/s in both directions together.",
		Evidence: []evidence.Evidence{{Name: "moved by the interfaces, both directions", Value: 412e6,
			Unit: "bits_per_second", Source: "rx_bytes + tx_bytes (near)"}},
		Remedy: evidence.Remedy{Text: "Run `linerate diagnose TARGET` to see what limits a path."},
	}
	c := evidence.Case{Watched: []evidence.Span{{Side: "near", Seconds: 3.0004}}}
	return report.NewDiagnose(Envelope(), "", c, []evidence.Finding{quiet}, nil)
}

// entries are one code with a rule and one without.
func entries() (rule, reserved evidence.Entry) {
	rule = evidence.Entry{
		Code: evidence.PathLoss, Title: "the path loses packets",
		Meaning:      "Segments are lost outside of both hosts, and the sender slows down for each of them.",
		Shows:        "Segments sent again and no local counter that explains them.",
		ConfusedWith: "A full bottleneck, whose queue drops what does not fit.",
		Remedy:       "Repair the path, or use a congestion control that does not take each loss for congestion.",
		Proof:        "Send datagrams at half of the rate: the same part of them is lost.", Rule: true,
	}
	return rule, evidence.Entry{Code: evidence.PauseFrames, Title: "the other end of the cable says stop",
		Meaning: "Pause frames hold the card."}
}
