//go:build linux && soak

package main_test

import (
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
)

// TestTwoPeople types changes on hosts that ask for two people: apply --to, sign on a machine
// without a network, and begin. It types what goes wrong as well: one signature, one person twice,
// a key that no host knows, files changed after the signature, expired orders, a hub killed in the
// middle, and a host that leaves in the middle. The kept change is made permanent, and undone.
// testdata/cosign.sh is what it types. It takes about seven minutes, nearly all of it waiting.
func TestTwoPeople(t *testing.T) {
	testenv.Need(t, testenv.Soak)
	typeFleet(t, "testdata/cosign.sh", []said{
		{"join", `(?s)(Each change needs 2 signatures.*){3}`},
		{"one signature", `(?m)^halted: .*the host answers too-few-signatures`},
		{"one signature", `(?m)^status 3$`},
		{"one person twice", `ann has signed already\nstatus 1\n`},
		{"one person twice", `(?m)^halted: .*the host answers bad-signature`},
		{"a key that no host knows", `(?m)^halted: .*the host answers key-unknown`},
		{"a plan that was changed", `(?s)(not those of the rollout.*status 1.*){2}`},
		{"orders that were changed", `(?m)^halted: .*the host answers bad-signature`},
		{"expired", `(?s)(make a new plan\nstatus 1.*){2}`},
		{"the hub is killed", `there is one of this name\nstatus 1\n`},
		{"the hub is killed", `(?m)^halted: .*the host answers too-few-signatures`},
		{"the hub is killed", `(?m)^signed by ann\+bob, in again.orders$`},
		{"the hub is killed", `(?m)^done in wave 100 %: 3 committed$`},
		{"permanent",
			`(?s)3 not-persistable.*\nstatus 3\n.*: 3 persisted\n(.*net.ipv4.tcp_wmem ?= ?4096 131072 4194304\n){3}`},
		{"permanent", `no host reports its change in force that a restart would end\nstatus 1`},
		{"undo needs one", `(?m)^done in .*: 3 undone$`},
		{"undo needs one", `h1/sysctl.d:\n\nh2/sysctl.d:\n\nh3/sysctl.d:$`},
		{"a host leaves", `(?m)^halted: (the (experiment on|measurements of) )?host`},
		{"a host leaves", `this host has left the fleet`},
		{"a host leaves", `(?m)^done in .*undone`},
	})
}
