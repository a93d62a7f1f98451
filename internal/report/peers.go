package report

import "time"

// SchemaPeers is the document of the peers that a serve answers.
const SchemaPeers = "linerate.peers/1"

// PeersDocument is linerate.peers/1: the peers of a file, after what the command did to it.
type PeersDocument struct {
	Envelope
	File    string      `json:"file"`
	Added   *PeerAdded  `json:"added,omitempty"`
	Revoked string      `json:"revoked,omitempty"` // name of the peer that is no more
	Peers   []PeerEntry `json:"peers"`
}

// PeerAdded is what the other side of a new peer needs. This is the only document with its key.
type PeerAdded struct {
	Name    string `json:"name"`
	Key     string `json:"key"`
	Command string `json:"command"` // the line to paste on the other host
	Address string `json:"address"` // HOST:PORT in that line
}

// PeerEntry is one peer, without its key.
type PeerEntry struct {
	Name        string     `json:"name"`
	AllowTuning bool       `json:"allow_tuning"`
	Tuning      string     `json:"tuning,omitempty"` // what it may change: class, patterns
	Added       *time.Time `json:"added_time,omitempty"`
	Expires     *time.Time `json:"expires_time,omitempty"` // absent: when it is revoked
	Expired     bool       `json:"expired"`
	LastUse     *time.Time `json:"last_use_time,omitempty"` // absent: it has never connected
	LastFrom    string     `json:"last_use_address,omitempty"`
}

// NewPeers makes a document of the peers in a file.
func NewPeers(e Envelope, file string, peers []PeerEntry) *PeersDocument {
	d := &PeersDocument{Envelope: e.Of(SchemaPeers), File: file, Peers: peers}
	FillSlices(d)
	return d
}
