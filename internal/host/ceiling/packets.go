package ceiling

import (
	"fmt"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/moderation"
)

// ofPackets are the limits on packets that interrupts, polling and rings set, of a card with a wire
// of known rate. Packets are told as the bits per second that they take of the wire, to be held
// against the link.
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

// interruptRate is the most interrupts per second of one receive queue, with where that was read.
// False: nothing fixed holds them back. That is so without rx-usecs, with adaptive-rx, which lets
// the driver choose, and with rx-frames, which interrupts as soon as so many have come.
func interruptRate(dev *host.Interface) (moderation.InterruptsPerSecond, string, bool) {
	usecs := dev.Coalesce["rx-usecs"]
	if usecs == 0 || dev.Coalesce["adaptive-rx"] != 0 || dev.Coalesce["rx-frames"] != 0 {
		return 0, "", false
	}
	source := fmt.Sprintf("ethtool -c %s: rx-usecs %d", dev.Name, usecs)
	// Some drivers have modes among the numbers: 3 is no 3 µs there. Of an adaptive mode its
	// highest rate is a bound.
	switch throttle, err := moderation.FromUsecs(moderation.Driver(dev.Driver), usecs); {
	case err == nil:
		_, most := throttle.Bounds()
		return most, source + ", " + throttle.String(), true
	case usecs < moderation.MinUsecs:
		return 0, "", false // too short to bind on any card, and a mode in drivers that nothing is known of
	}
	return moderation.RateOf(time.Duration(usecs) * time.Microsecond), source, true
}

// receiveQueues is how many queues receive, each with an interrupt of its own; one where it is not
// told.
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

// ofInterrupts are the two products of an interrupt rate: with what the rings hold, which is a
// wall, since a card has no other place for frames until it may interrupt; and with what the kernel
// takes in one round of polling, past which packets wait for the next round or for ksoftirqd and
// the softnet counter time_squeeze rises.
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
		all = append(all, c)
	}
	budget, ok := s.SysctlNumber("net.core.netdev_budget")
	if !ok || budget <= 0 || budget >= int64(ring) {
		return all // the rings are the narrower place, or nobody knows
	}
	if c, ok := asRate("polling:", dev, product(uint32(budget))); ok {
		c.Why = fmt.Sprintf(
			"%.0f interrupts/s (%s) × netdev_budget %d packets in each round%s = %s; more is put off and counted as time_squeeze (admin-guide/sysctl/net.rst)",
			float64(interrupts), because, budget, of, c.Why)
		all = append(all, c)
	}
	return all
}

// asRate tells a rate of packets as a rate on the wire: in full frames if that stays under the
// link, else in the smallest frames, with @64B behind the name. False: the link is full before,
// whatever the frames. Why is the last part of the formula.
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

// wireRate is what packets of that MTU take of the wire, in bits per second.
func wireRate(packets moderation.PacketsPerSecond, mtu int) float64 {
	return float64(packets) * float64(moderation.WireBytes(mtu)) * 8
}

// ofRing is the rate at which one receive ring is full just when the processor that empties it
// comes back from a round of polling other queues, which may last netdev_budget_usecs. It is no
// wall for a processor that has nothing else to do; why tells the ring as a burst: how many frames
// back to back, and how long that takes at the rate of the link. Full frames only: of the smallest
// no common ring holds enough.
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
		Why: fmt.Sprintf("if nobody empties it for netdev_budget_usecs %d: %d descriptors of a receive ring × %d bytes / %s; "+
			"the ring holds %d frames back to back, full ones for %s at %s, 64-byte ones for %s (IEEE 802.3, admin-guide/sysctl/net.rst)",
			usecs, descriptors, moderation.WireBytes(dev.MTUBytes), unit.FormatSeconds(away.Seconds()),
			descriptors, unit.FormatSeconds(full.Seconds()), link, unit.FormatSeconds(small.Seconds())),
	}, true
}

// Core estimates what one processor core carries through dev in full frames, from what a packet was
// measured to cost it: 1 / cost packets per second. It is not among [All], which measure nothing.
// It holds for one flow, as one core empties its queue, and for packets like the measured ones:
// where offloads join frames, the cost of a frame is what has to be given. False: no cost, or no
// MTU.
func Core(dev *host.Interface, perPacket time.Duration) (Rate, bool) {
	if perPacket <= 0 || dev.MTUBytes <= 0 {
		return Rate{}, false
	}
	packets := moderation.PacketsPerSecond(1 / perPacket.Seconds())
	return Rate{
		Name:       "core:" + dev.Name,
		BitsPerSec: wireRate(packets, dev.MTUBytes),
		Why: fmt.Sprintf("one core at %s a packet, as measured: %s packets/s; as frames of MTU %d, %d bytes each on the wire",
			unit.FormatSeconds(perPacket.Seconds()), unit.FormatCount(float64(packets)), dev.MTUBytes,
			moderation.WireBytes(dev.MTUBytes)),
	}, true
}
