package cards

import (
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
)

// What the kernel's log shows, and for how long it counts. A fault of this hour is likely to go on;
// one of the last day is worth a look; an older one may be repaired.
const (
	logFresh = time.Hour
	// logNow is how long ago the last event may be for the fault to last while the host is judged: a
	// verdict takes a quarter of a minute, and a NIC that hangs does so again within seconds.
	logNow = time.Minute
	logOld = 24 * time.Hour
	// flaps is how often a link must have gone down: once or twice a cable was moved.
	flaps = 3
)

// driverFault finds a NIC of which the kernel itself says that it hung, or that its driver broke
// the rules of polling. All traffic through it stood still for seconds at that time, whatever
// counters of a later moment show.
func driverFault(s *evidence.Span) *evidence.Finding {
	return worst(cardsOf(s), func(c card) *evidence.Finding {
		return c.said(evidence.DriverFault, host.QueueTimeout, host.HardwareHang, host.NAPIBudget)
	})
}

// linkFlaps finds a link that goes down and comes back: during the observation, or often by the
// kernel's log.
func linkFlaps(s *evidence.Span) *evidence.Finding {
	return worst(cardsOf(s), func(c card) *evidence.Finding {
		x := c.said(evidence.LinkFlapping, host.LinkDown)
		changes := c.s.Count("nic." + c.Name + ".carrier_changes")
		if c.s.SinceBoot || changes == 0 {
			return x
		}
		now := &evidence.Finding{
			Code: evidence.LinkFlapping, Severity: evidence.Warning, Where: where(s),
			Title: fmt.Sprintf("The link of %s came or went %s %s.", c.Name, counted(int(changes)), s.When()),
			Evidence: []evidence.Evidence{{Name: "times that the link came or went", Value: changes, Unit: "events",
				Source: c.source("carrier_changes")}},
			Rejected: []string{
				fmt.Sprintf("Not a fault of long ago: the counter moved %s %s.", counted(int(changes)), s.When())},
			Confidence: 0.9,
		}
		if x != nil {
			now.Evidence = append(now.Evidence, x.Evidence...)
		}
		logRemedy(now)
		return now
	})
}

// said returns the finding for what the kernel said about this NIC; nil if it said nothing that
// counts.
func (c card) said(code evidence.Code, kinds ...host.EventKind) *evidence.Finding {
	var last *host.KernelEvent
	total := 0
	x := &evidence.Finding{Code: code, Severity: evidence.Notice, Where: where(c.s)}
	for i := range c.s.Host.KernelLog {
		e := &c.s.Host.KernelLog[i]
		if e.Interface != c.Name || e.LastSeconds > logOld.Seconds() || !oneOf(e.Kind, kinds) {
			continue
		}
		// One hang has lines of two kinds: the kernel's watchdog, and the driver that resets the NIC.
		if total = max(total, e.Total); last == nil || e.LastSeconds < last.LastSeconds {
			last = e
		}
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: logMeaning[e.Kind], Value: float64(e.Total), Unit: "events",
				Source: c.source("kernel log")},
			evidence.Evidence{Name: "the last message", Value: e.Text, Source: "kernel log, " +
				evidence.Seconds(e.LastSeconds) + " ago"})
	}
	if last == nil || code == evidence.LinkFlapping && total < flaps {
		return nil
	}
	if last.LastSeconds <= logFresh.Seconds() {
		x.Severity = evidence.Warning
	}
	// A fault that ended before the test began explains none of its losses.
	x.Aside = last.LastSeconds > logNow.Seconds()
	x.Title = fmt.Sprintf(logSentence[last.Kind]+" %s, the last one %s ago (kernel log).", c.Name, counted(total),
		evidence.Seconds(last.LastSeconds))
	x.Confidence = evidence.Combine(0.6, evidence.When(x.Severity == evidence.Warning, 0.5),
		evidence.When(total >= 3, 0.3))
	x.Rejected = append(x.Rejected, fmt.Sprintf("Not text of a program: %s lines came from the kernel itself, "+
		"and name a NIC of this host.", evidence.Count(float64(total))))
	if !c.s.SinceBoot && c.s.Seconds > 0 {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not measured: whether it happened again in the %s of the observation.",
			evidence.Seconds(c.s.Seconds)))
	}
	logRemedy(x)
	return x
}

func oneOf(kind host.EventKind, all []host.EventKind) bool {
	for _, k := range all {
		if k == kind {
			return true
		}
	}
	return false
}

// counted returns "1 time" or "5 times".
func counted(n int) string {
	if n == 1 {
		return "1 time"
	}
	return evidence.Count(float64(n)) + " times"
}

// logMeaning and logSentence say what an event means, alone and in a sentence.
var (
	logMeaning = map[host.EventKind]string{
		host.QueueTimeout: "transmit queue stood still (NETDEV WATCHDOG)", host.HardwareHang: "NIC hung or was reset",
		host.NAPIBudget: "poll exceeded its budget", host.LinkDown: "link went down",
	}
	logSentence = map[host.EventKind]string{
		host.QueueTimeout: "A transmit queue of %s stood still", host.HardwareHang: "NIC %s hung or was reset",
		host.NAPIBudget: "The driver of %s polled beyond its budget", host.LinkDown: "The link of %s went down",
	}
)

// logRemedy says what to do about hardware that fails.
func logRemedy(x *evidence.Finding) {
	x.Remedy.Text = "Update the driver and the firmware of the NIC. If it stays, switch off its offloads and power " +
		"saving (EEE, ASPM) one at a time, and try another slot or NIC; `dmesg` has all messages."
	x.Remedy.Proof = "Run the load that led to it for longer than the time between two events, before and after the " +
		"change: the kernel's log gains no further line."
	if x.Code == evidence.LinkFlapping {
		x.Remedy.Text = "Change the cable or the transceiver, then the port of the switch, and compare the error " +
			"counters of both ends. Energy-efficient Ethernet and a wrong speed setting have the same effect."
		x.Remedy.Proof = "Watch carrier_changes for as long as the last ten changes took, before and after: it stands still."
	}
}
