package report

import (
	"encoding/json"
	"time"
)

// The documents of a fleet.
const (
	SchemaFleetStatus = "linerate.fleet-status/1"
	SchemaFleetHosts  = "linerate.fleet-hosts/1"
	SchemaFleetAsk    = "linerate.fleet-ask/1"
	SchemaFleetFetch  = "linerate.fleet-fetch/1"
	SchemaFleetInvite = "linerate.fleet-invite/1"
	SchemaFleetDecide = "linerate.fleet-decide/1"
	SchemaFleetJoin   = "linerate.fleet-join/1"
)

// FleetStatusDocument is linerate.fleet-status/1: a fleet in counts.
type FleetStatusDocument struct {
	Envelope
	Members     map[string]int    `json:"members"` // by state: member, waiting, quarantined, removed
	Silent      int               `json:"silent_hosts"`
	Drifted     int               `json:"drifted_hosts"`
	Differing   int               `json:"differing_hosts"` // from their class
	Findings    map[string]int    `json:"findings"`        // hosts by code
	Classes     []FleetClass      `json:"classes"`         // the largest first
	Undecided   []FleetHost       `json:"undecided"`       // hosts about which a person has to decide
	Invitations []FleetInvitation `json:"invitations"`     // that can be used
	Connections int               `json:"connections"`     // at the bus of this hub
	// connections that the bus cut because they did not read fast enough, since the hub started
	Cut int64 `json:"cut_connections_total"`
}

// FleetClass is a class of like hosts in counts.
type FleetClass struct {
	Name      string         `json:"name"`
	Hosts     int            `json:"hosts"`
	Silent    int            `json:"silent_hosts"`
	Drifted   int            `json:"drifted_hosts"`
	Differing int            `json:"differing_hosts"`
	Findings  map[string]int `json:"findings,omitempty"`
}

// FleetHost is one host of a fleet.
type FleetHost struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	State       string            `json:"state"`
	Reason      string            `json:"reason,omitempty"`      // why it is not a member
	Fingerprint string            `json:"fingerprint,omitempty"` // of its key; the host shows the same
	From        string            `json:"from,omitempty"`        // address at which it joined
	Class       string            `json:"class,omitempty"`
	Version     string            `json:"version,omitempty"` // of linerate
	Groups      []string          `json:"groups,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	LastSeen    *time.Time        `json:"last_seen,omitempty"` // absent: not since the hub started
	Findings    []string          `json:"findings,omitempty"`
	Drifted     []string          `json:"drifted_knobs,omitempty"`
	// why the host cannot read its journal; then no drift is known
	JournalNotRead string `json:"journal_not_read,omitempty"`
	Differs        int    `json:"differing_settings,omitempty"`
}

// FleetInvitation is the permission to join, without its secret.
type FleetInvitation struct {
	ID      string            `json:"id"`
	Expires time.Time         `json:"expires"`
	Uses    int               `json:"uses"`
	Used    int               `json:"used"`
	Groups  []string          `json:"groups,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Approve bool              `json:"approve,omitempty"` // a person has to approve each host
}

// FleetHostsDocument is linerate.fleet-hosts/1: a page of hosts.
type FleetHostsDocument struct {
	Envelope
	Selection string      `json:"selection"`
	Selected  int         `json:"selected_hosts"` // on all pages
	Hosts     []FleetHost `json:"hosts"`
	// of the one host that was selected, in which settings it differs from its class
	Differences []FleetDifference `json:"differences,omitempty"`
	Next        string            `json:"next,omitempty"` // begins the next page; absent: this is the last
}

// FleetDifference is a setting in which a host is not like its class.
type FleetDifference struct {
	Knob  string  `json:"knob"`
	Value string  `json:"value,omitempty"` // absent: the host does not have it
	Usual string  `json:"usual"`
	Share float64 `json:"share_ratio"` // of the class that has the usual value
}

// FleetAskDocument is linerate.fleet-ask/1: what hosts answered to one question.
type FleetAskDocument struct {
	Envelope
	Verb      string        `json:"verb"`
	Arguments []string      `json:"arguments,omitempty"`
	Selection string        `json:"selection"`
	Asked     int           `json:"asked_hosts"`
	Answers   []FleetAnswer `json:"answers"` // each different one once, the most frequent first
	Absent    []FleetName   `json:"absent"`  // not connected
	Silent    []FleetName   `json:"silent"`  // did not answer in time
	// The hub lost its own connection meanwhile: hosts that are silent may have answered.
	Incomplete bool    `json:"incomplete,omitempty"`
	Seconds    float64 `json:"duration_seconds"`
}

// FleetAnswer is one answer, and who gave it.
type FleetAnswer struct {
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  string          `json:"error,omitempty"`
	Hosts  []FleetName     `json:"hosts"`
}

// FleetName names a host.
type FleetName struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// FleetFetchDocument is linerate.fleet-fetch/1: documents that were fetched from hosts.
type FleetFetchDocument struct {
	Envelope
	Document  string         `json:"document"`
	Selection string         `json:"selection"`
	Fetched   []FleetFetched `json:"fetched"`
	Missing   []FleetFetched `json:"missing"` // with the reason
	Seconds   float64        `json:"duration_seconds"`
}

// FleetFetched is one document of one host.
type FleetFetched struct {
	FleetName
	Hash  string `json:"hash,omitempty"` // 128 bits of SHA-256
	Bytes int64  `json:"document_bytes,omitempty"`
	File  string `json:"file,omitempty"` // where it was written
	Error string `json:"error,omitempty"`
}

// FleetInviteDocument is linerate.fleet-invite/1: a new invitation.
type FleetInviteDocument struct {
	Envelope
	FleetInvitation
	Line string `json:"line"` // to use on the host; it holds the secret
}

// FleetDecideDocument is linerate.fleet-decide/1: hosts after a person's decision.
type FleetDecideDocument struct {
	Envelope
	Hosts []FleetHost `json:"hosts"`
}

// FleetJoinDocument is linerate.fleet-join/1: the membership of this host.
type FleetJoinDocument struct {
	Envelope
	Hub         string `json:"hub"` // HOST:PORT
	State       string `json:"state"`
	ID          string `json:"id,omitempty"` // of this host in the fleet
	Reason      string `json:"reason,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"` // of the key of this host
}
