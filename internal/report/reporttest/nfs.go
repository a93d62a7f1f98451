package reporttest

import (
	"math"
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/transfer"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/storage/nfs"
	"github.com/linerate/linerate/internal/storage/nfs/mount"
)

// nfsDocuments are a mount whose writes wait for slots, and a host without mounts.
func nfsDocuments() []Document {
	return []Document{
		{"nfs", report.NewNFS(Envelope(), []nfs.Mount{{Source: "fs.example.com:/volume4", Path: "/mnt/data", Type: "nfs4",
			Options: []string{"rw", "vers=4.1", "rsize=131072", "wsize=131072", "proto=tcp"}, AgeSeconds: 83520,
			SpanSeconds: 83520, ReadSize: 131072, WriteSize: 131072, Connections: 1, ReadAhead: 131072, Protocol: "tcp",
			Waits: nfs.Slots, Because: []string{"Of the time of all calls, 97.4 % is waiting for a slot or the transport, " +
				"0.10 % the network, 2.48 % the server, 0.00 % this host's processing of answers.",
				"One connection carries all calls; the mount option nconnect allows up to 16."},
			Operations: []nfs.Operation{
				{Operation: "WRITE", Requests: 322308, BytesPerCall: 121677, QueueSeconds: 1.246, RoundTrip: 0.0315,
					Execution: 1.278, Waits: nfs.Slots},
				{Operation: "READ", Requests: 34096, Retransmissions: 3, BytesPerCall: 52769, QueueSeconds: 67e-6,
					RoundTrip: 0.0136, Execution: 0.0137, Waits: nfs.Server},
				{Operation: "ACCESS", Requests: 5, Waits: nfs.Nowhere, Unusable: true}},
			Transports: []nfs.Transport{{Protocol: "tcp", Connects: 2, Sends: 938505, InFlight: 13.6, SlotsMax: 32}},
			ReadBytes:  2021340783, WriteBytes: 39056395530, ServerRead: 1788561151, ServerWritten: 39087991255,
			Warnings: []string{"ACCESS: the kernel let a counter wrap; its times are left out"}}})},
		{"nfs-none", report.NewNFS(Envelope(), nil)},
		{"nfs-tune", nfsSweep()},
		{"nfs-tune-gone", nfsGone()},
	}
}

// nfsSweep is a sweep that kept two options: the card lost packets from 128 KiB on.
func nfsSweep() *report.NFSDocument {
	fits, misses := true, false
	at := func(rsize int64, read float64, fit *bool, frames int, lost uint64) transfer.Point {
		p := transfer.Point{Effective: mount.Effective{Version: "4.2", Protocol: "tcp", ReadSize: rsize, WriteSize: 1048576,
			Connections: 1, ReadAhead: 131072}, Segments: 12, Throughput: math.Sqrt(read * 40e6), ReadRate: read,
			WriteRate: 40e6, Waits: "server", ReadFrames: frames, WriteFrames: 725, Fits: fit, OutOfOrder: lost,
			Drops: []drops.Drop{}}
		if lost > 0 {
			p.Drops = append(p.Drops, drops.Drop{Place: "nic.eth0.rx_missed_errors", Total: lost, Stage: drops.Ring})
		}
		return p
	}
	id := knob.ID("nfs:fs.example.com:/data/rsize")
	gain := tune.Effect{Pairs: 6, Ratio: 1.82, Low: 1.61, High: 2.04, Confidence: 0.969}
	return report.NewNFSTune(Envelope(), report.NFSRun{
		Base: mount.Spec{Source: "fs.example.com:/data", Version: "4.2"}, At: "/mnt/data",
		Plan: mount.Plan{Segment: time.Second}, Card: transfer.Card{Name: "eth0", MTU: 1500, Ring: 80},
		Duration: 214 * time.Second,
		Result: &transfer.Result{
			Facts: mount.Facts{Ends: mount.Ends{Server: netip.MustParseAddr("192.0.2.9"), RoundTrip: 310 * time.Microsecond},
				Default: mount.Effective{Version: "4.2", Protocol: "tcp", ReadSize: 1048576, WriteSize: 1048576, Connections: 1,
					ReadAhead: 131072}, File: ".linerate-nfs-web1-4711-90210-read", FileBytes: 256 << 20,
				Removed: []string{".linerate-nfs-web1-4000-80000-read"}},
			Sweep: []transfer.Point{at(65536, 80e6, &fits, 47, 0), at(131072, 31e6, &misses, 93, 871),
				at(1048576, 24e6, &misses, 739, 4120)},
			LossesFrom: 131072, Warm: map[mount.ServerCache]int{mount.ServerWarm: 36},
			Best: mount.Spec{Source: "fs.example.com:/data", Version: "4.2", ReadSize: 65536, ReadAhead: 2 << 20},
			Outcome: &tune.Outcome{State: tune.StateCommitted, Final: &gain,
				Trials: []tune.Trial{
					{Knob: id, From: "1048576", To: "65536", Side: tune.Near, Effect: gain, Verdict: tune.Kept,
						Reason: "better in every pair", Why: "bytes of one read call"},
					{Knob: "nfs:fs.example.com:/data/nconnect", From: "1", To: "16", Side: tune.Near, Verdict: tune.Refused,
						Reason: "2 connections are in use: an earlier mount of this server decides"}},
				Kept: []tune.Change{{Knob: id, Side: tune.Near, From: "1048576", To: "65536", ID: "1"}}},
		},
	})
}

// nfsGone is a sweep whose server went away in the middle.
func nfsGone() *report.NFSDocument {
	return report.NewNFSTune(Envelope(), report.NFSRun{
		Base: mount.Spec{Source: "192.0.2.9:/x", Version: "3"}, At: "/mnt/x",
		Plan:       mount.Plan{File: "big", Segment: time.Second},
		Unfinished: "the server went away: read big: the server does not answer for 30s",
		Result: &transfer.Result{
			Facts: mount.Facts{Ends: mount.Ends{Server: netip.MustParseAddr("192.0.2.9"), RoundTrip: time.Millisecond},
				Default: mount.Effective{Version: "3", Protocol: "tcp", ReadSize: 65536, WriteSize: 65536, Connections: 1,
					ReadAhead: 131072}, File: "big", FileBytes: 1 << 40},
			Warm:    map[mount.ServerCache]int{mount.ServerCold: 9},
			Outcome: &tune.Outcome{State: tune.StateUndone},
		},
	})
}
