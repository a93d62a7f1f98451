// Package transfer finds the mount options of an NFS export by experiment.
//
// # Model
//
// A [Layer] makes mounts and measures segments: mount.Bench over the kernel's client, or a
// simulated one in tests. [Run] hands them to the engine of package tune. The knobs are what a
// mount asks for: rsize, wsize, read-ahead, nconnect and the protocol. Turning one changes only
// what the next mount of the layer asks for; no existing mount is touched, so there is nothing to
// journal. A level that kernel or server do not grant is refused with their figure.
//
// The objective is the geometric mean of read and write throughput, so that neither hides the
// other. A knob is kept by the rules of package tune: paired segments in random order, an interval,
// and a confirmation with fresh pairs.
//
// [Result].Sweep has a [Point] for each set of options: rates, drops by place, and the frames of
// one transfer against the receive ring (calc.TransferFrames). LossesFrom is the smallest read size
// whose segments lost packets or calls, when all smaller ones lost less than a twentieth of
// that.
//
// # Units
//
// Bytes and bytes per second.
//
// # Sources
//
// nfs(5); the burst arithmetic is that of calc.Burst: a transfer is a burst of back-to-back frames.
//
// # Limits
//
// Drops are those of this host, with all its traffic. What the server or the path lost shows as
// segments sent again or out of order, without a place.
package transfer
