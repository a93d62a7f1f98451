package ceiling

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/moderation"
)

// ofPackets returns the limits on packets that interrupts, polling and rings set, for a card with a
// wire of known rate. They are expressed as bits per second on the wire, to compare them with the
// link.
func ofPackets(s *host.Snapshot, dev *host.Interface) []Rate {
	if dev.SpeedBitsPerSec <= 0 || dev.MTUBytes <= 0 || NominalSpeed(s, dev) || dev.Rings == nil ||
		dev.Rings.Rx.Current == 0 {
		return nil
	}
	var all []Rate
	if interrupts, because, ok := interruptRate(dev); ok {
		all = append(all, ofInterrupts(s, dev, interrupts, because)...)
	}
	if c, ok := ofRing(s, dev); ok {
		all = append(all, c)
	}
	return all
}

// interruptRate returns the highest interrupts per second of one receive queue, with its source. ok
// is false if no fixed limit holds: without rx-usecs, with adaptive-rx, which lets the driver
// choose, and with rx-frames, which interrupts after that many frames.
func interruptRate(dev *host.Interface) (moderation.InterruptsPerSecond, string, bool) {
	usecs := dev.Coalesce["rx-usecs"]
	if usecs == 0 || dev.Coalesce["adaptive-rx"] != 0 || dev.Coalesce["rx-frames"] != 0 {
		return 0, "", false
	}
	source := fmt.Sprintf("ethtool -c %s: rx-usecs %d", dev.Name, usecs)
	// In some drivers a few numbers are modes: 3 is not 3 µs there. The highest rate of an adaptive
	// mode is a bound.
	switch throttle, err := moderation.FromUsecs(moderation.Driver(dev.Driver), usecs); {
	case err == nil:
		_, most := throttle.Bounds()
		return most, source + ", " + throttle.String(), true
	case usecs < moderation.MinUsecs:
		return 0, "", false // too short to bind on any card, and a mode in some unknown drivers
	}
	return moderation.RateOf(time.Duration(usecs) * time.Microsecond), source, true
}

// receiveQueues returns the number of receive queues, each with an interrupt of its own; one if it
// is not known.
func receiveQueues(dev *host.Interface) int {
	if dev.Channels != nil && dev.Channels.Combined+dev.Channels.Rx > 0 {
		return int(dev.Channels.Combined + dev.Channels.Rx)
	}
	n := 0
	for _, q := range dev.Queues {
		if strings.HasPrefix(q.Name, "rx-") {
			n++
		}
	}
	return max(n, 1)
}

// ofInterrupts returns the two products of an interrupt rate. The first uses what the rings hold
// and is a hard limit, since a card has no other place for frames until it may interrupt. The
// second uses what the kernel takes in one round of polling; beyond it packets wait for the next
// round or for ksoftirqd, and the softnet counter time_squeeze rises.
func ofInterrupts(s *host.Snapshot, dev *host.Interface, interrupts moderation.InterruptsPerSecond,
	because string) []Rate {
	var all []Rate
	queues, ring := receiveQueues(dev), dev.Rings.Rx.Current
	of := ""
	if queues > 1 {
		of = fmt.Sprintf(" × %d queues, of which one flow has one", queues)
	}
	product := func(frames uint32) moderation.PacketsPerSecond {
		return moderation.PollingProduct(interrupts, frames) * moderation.PacketsPerSecond(queues)
	}
	if c, ok := asRate("interrupts:", dev, product(ring)); ok {
		c.Why = fmt.Sprintf(
			"%.0f interrupts/s (%s) × at most %d frames, what a receive ring holds between two of them%s = %s",
			float64(interrupts), because, ring, of, c.Why)
		c.Why += gathered(dev, interrupts, ring, queues, strings.HasSuffix(c.Name, "@64B"))
		all = append(all, c)
	}
	budget, ok := s.SysctlNumber("net.core.netdev_budget")
	if !ok || budget <= 0 || budget >= int64(ring) {
		return all // the rings are the narrower limit, or the budget is not known
	}
	if c, ok := asRate("polling:", dev, product(uint32(budget))); ok {
		c.Why = fmt.Sprintf(
			"%.0f interrupts/s (%s) × netdev_budget %d packets in each round%s = %s; "+
				"the kernel defers more and counts it as time_squeeze (admin-guide/sysctl/net.rst)",
			float64(interrupts), because, budget, of, c.Why)
		all = append(all, c)
	}
	return all
}

// gathered says how many frames a full link brings for each interrupt, and from which interrupt
// rate on the ring holds them.
func gathered(dev *host.Interface, interrupts moderation.InterruptsPerSecond, ring uint32, queues int,
	smallest bool) string {
	mtu := dev.MTUBytes
	if smallest {
		mtu = moderation.MinimumPayload
	}
	packets := moderation.LineRate(unit.BitRate(dev.SpeedBitsPerSec), mtu) / moderation.PacketsPerSecond(queues)
	needed := moderation.RateForFrames(packets, float64(ring))
	return fmt.Sprintf("; a full link brings %.0f frames for each interrupt, and the ring holds them from "+
		"%.0f interrupts/s on", moderation.FramesPerInterrupt(packets, interrupts), math.Ceil(float64(needed)))
}

// asRate converts a rate of packets to a rate on the wire: in full frames if that stays under the
// link, otherwise in the smallest frames, with @64B after the name. ok is false if the link is full
// before, for frames of any size. Why gets the last part of the formula.
func asRate(name string, dev *host.Interface, packets moderation.PacketsPerSecond) (Rate, bool) {
	for _, frame := range []struct {
		mtu    int
		suffix string
		words  string
	}{
		{dev.MTUBytes, "", fmt.Sprintf("frames of MTU %d", dev.MTUBytes)},
		{moderation.MinimumPayload, "@64B", "frames of 64 bytes"},
	} {
		wire := moderation.WireBytes(frame.mtu)
		if rate := wireRate(packets, frame.mtu); rate < dev.SpeedBitsPerSec {
			return Rate{
				Name:       name + dev.Name + frame.suffix,
				BitsPerSec: rate,
				Why: fmt.Sprintf("%s packets/s; as %s, %d bytes each on the wire",
					unit.FormatCount(float64(packets)), frame.words, wire),
			}, true
		}
	}
	return Rate{}, false
}

// wireRate returns the bits per second on the wire of packets with that MTU.
func wireRate(packets moderation.PacketsPerSecond, mtu int) float64 {
	return float64(packets) * float64(moderation.WireBytes(mtu)) * 8
}

// ofRing returns the rate at which one receive ring fills just when the processor that empties it
// returns from polling other queues, which may last netdev_budget_usecs. It is no limit for a
// processor with nothing else to do. Why describes the ring as a burst: how many frames back to
// back, and how long that takes at the link's rate. It uses full frames only: no common ring holds
// enough of the smallest.
func ofRing(s *host.Snapshot, dev *host.Interface) (Rate, bool) {
	usecs, ok := s.SysctlNumber("net.core.netdev_budget_usecs")
	if !ok || usecs <= 0 || usecs > time.Hour.Microseconds() {
		return Rate{}, false
	}
	away := time.Duration(usecs) * time.Microsecond
	descriptors := dev.Rings.Rx.Current
	rate := wireRate(moderation.PacketsPerSecond(float64(descriptors)/away.Seconds()), dev.MTUBytes)
	if rate >= dev.SpeedBitsPerSec {
		return Rate{}, false
	}
	link := unit.BitRate(dev.SpeedBitsPerSec)
	full := moderation.RingTime(descriptors, moderation.LineRate(link, dev.MTUBytes))
	small := moderation.RingTime(descriptors, moderation.LineRate(link, moderation.MinimumPayload))
	return Rate{
		Name:       fmt.Sprintf("ring:%s@%s", dev.Name, away),
		BitsPerSec: rate,
		Why: fmt.Sprintf("if the ring is not emptied for netdev_budget_usecs %d: %d descriptors of a receive ring × "+
			"%d bytes / %s; the ring holds %d frames back to back, full ones for %s at %s, 64-byte ones for %s "+
			"(IEEE 802.3, admin-guide/sysctl/net.rst)",
			usecs, descriptors, moderation.WireBytes(dev.MTUBytes), unit.FormatSeconds(away.Seconds()),
			descriptors, unit.FormatSeconds(full.Seconds()), link, unit.FormatSeconds(small.Seconds())),
	}, true
}

// Core estimates what one processor core carries through dev in full frames, from the measured cost
// of a packet: 1 / cost packets per second. [All] does not include it. It holds for one flow,
// because one core empties its queue, and for packets like the measured ones: where offloads merge
// frames, give the cost of a frame. ok is false without a cost or an MTU.
func Core(dev *host.Interface, perPacket time.Duration) (Rate, bool) {
	if perPacket <= 0 || dev.MTUBytes <= 0 {
		return Rate{}, false
	}
	packets := moderation.PacketsPerSecond(1 / perPacket.Seconds())
	return Rate{
		Name:       "core:" + dev.Name,
		BitsPerSec: wireRate(packets, dev.MTUBytes),
		Why: fmt.Sprintf("one core at %s per packet, as measured: %s packets/s; "+
			"as frames of MTU %d, %d bytes each on the wire",
			unit.FormatSeconds(perPacket.Seconds()), unit.FormatCount(float64(packets)), dev.MTUBytes,
			moderation.WireBytes(dev.MTUBytes)),
	}, true
}
