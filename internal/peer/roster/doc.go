// Package roster keeps the peers that a serve answers: their names, keys, rights, ends and last
// uses.
//
// # Model
//
// A [File] holds the peers, and is what `linerate peers` edits; a person may edit it too. [Follow]
// returns its content as it is now, while a serve runs: a peer that is added can connect, and one
// that is revoked is lost. The keys are those of package wire, and a [wire.Keyring] has the same
// ones at any time.
//
// The file is JSON:
//
//	{
//	  "format": "linerate.serve-peers/1",
//	  "peers": [
//	    {
//	      "name": "hub",
//	      "key": "HHEV-S9H6-89S6-T420-9RK6-RFAV-GW1Z",
//	      "allow_tuning": "d1,sysctl:net.ipv4.*",
//	      "added_time": "2026-11-26T04:20:00Z",
//	      "expires_time": "2027-11-26T04:20:00Z"
//	    }
//	  ]
//	}
//
// Without allow_tuning a peer runs tests only; without expires_time its key has no end. An unknown
// key of an object is an error, because a misspelt limit limits nothing.
//
// The last uses are in a second file beside it, named as it is with ".used" behind. A serve writes
// that one, and never the file of the keys: an edit by a person and a note by a serve cannot meet.
// It names keys by [wire.Key.ID], which is not secret, so a peer that is added again begins anew.
//
// # Trust
//
// A user who can write the file can grant the right to change this host; one who can read it has
// the keys. So both files have mode 0600, and a file is refused if other users may read it, or if
// they may replace it or a directory on the way to it ([durable.Truster]). Both are replaced whole
// ([durable.Replace]), under one lock, so a kill or a power failure leaves the old content or the
// new one.
//
// A running serve that finds the file damaged, or in other hands, keeps the peers that it had, and
// reports that. A file that is gone has no peers.
//
// # Units
//
// Times are UTC, in RFC 3339, of the wall clock: they outlive the process and the boot.
//
// # Sources
//
// RFC 8259 (JSON), RFC 3339; proc_pid_cmdline(5) for why a key is never an argument.
//
// # Limits
//
// A running serve looks at the file once a second, so a revocation takes up to a second, and the
// end of a key follows a clock that can be set. A last use is written at most once a minute, so a
// serve that is killed forgets up to a minute. On systems that do not say who owns a file, only its
// content is checked.
package roster
