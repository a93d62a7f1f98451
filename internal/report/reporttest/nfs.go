package reporttest

import (
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/storage/nfs"
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
	}
}
