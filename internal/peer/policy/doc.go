// Package policy is what the administrator of one host allows a fleet to do there. The host
// enforces it, and no message of the fleet can change it.
//
// # Model
//
// The file is /etc/linerate/policy.yaml, owned by root. [Read] refuses a file that another user can
// change. Without a file, [Default] holds: the fleet may measure a little, and change nothing.
// [Policy.Change] judges one change, and each refusal has its own error. [Policy.Meaning] says in
// plain words what a policy allows.
//
//	version: 1
//	kill_switch: off            # on: no test and no change of the fleet
//	tests:
//	  max_share_ratio: 0.1      # of the rate of the link
//	  link_rate: 10G            # where the NIC does not say it; without both, 100M
//	  max_seconds_per_hour: 10
//	  hours: any                # or 22:00-06:00, in the host's time zone
//	  peers: ["group:lab", 10.0.0.0/8]
//	changes:
//	  allow: ["sysctl:net.core.*"]
//	  deny: ["sysctl:net.core.busy_*"]
//	  max_class: d1
//	  max_deadline: 5m
//	  hours: 01:00-05:00
//	  persist: off              # on: kept changes may survive a restart
//	  signatures: 1             # of different people, for d0 and d1
//	  signatures_disturbing: 2  # for d2 and above, and to persist
//
// # Format
//
// The file is in a small part of YAML: keys with plain or quoted words, lists in brackets on one
// line or with dashes, and comments. Every file that Parse accepts means the same to a YAML
// library, which a test of the hub holds. Anchors, tags, several documents, blocks of text and tabs
// are errors, and so are unknown and doubled keys.
//
// A library is not linked: go.yaml.in/yaml/v3 3.0.5 adds 536 576 bytes to the program of root, and
// accepts more than a policy needs.
//
// # Units
//
// Shares are ratios from 0 to 1. Durations are written as 90s or 5m. Hours are of the host's local
// time; a window from 22:00 to 06:00 passes midnight.
//
// # Sources
//
// YAML 1.2.2 for the part that is read; design §8 for the classes of disturbance.
//
// # Limits
//
// At most 64 KiB, 1 000 patterns and 1 000 peers.
package policy
