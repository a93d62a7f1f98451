package main_test

// farSide starts `linerate serve` by the units that are shipped. The first connection starts it, as
// a user without any right; the key of a peer outlives its end, its crash and its socket; and a
// revoked key opens nothing.
func (h *host) farSide() {
	h.t.Helper()
	h.ship("sysusers.d/linerate.conf", "/etc/sysusers.d")
	h.ship("systemd/linerate-serve.socket", "/etc/systemd/system")
	h.ship("systemd/linerate-serve.service", "/etc/systemd/system")
	h.sh(`systemd-sysusers; systemctl daemon-reload; systemctl start linerate-serve.socket; umask 077
		linerate peers add office --address 127.0.0.1 --json | grep -o '"key":"[^"]*"' | cut -d'"' -f4 >/run/office.key`)
	const active = "systemctl is-active linerate-serve.socket linerate-serve.service || true"
	h.says(active, "active", "inactive")

	// An emulator may need longer than the usual 10 s to start serve for the first connection.
	const measure = "linerate measure 127.0.0.1 --test rr --duration 1s --connect-timeout 5m " +
		"--key-file /run/office.key --json"
	const figure = measure + ` | grep -o '"transactions_per_second"' | head -n1`
	h.says(figure+"; "+active, `"transactions_per_second"`, "active", "active")
	h.confined("linerate-serve")
	h.says(`stat -c '%a %U' /var/lib/linerate-serve /var/lib/linerate-serve/peers.json
		stat -c %U /proc/$(systemctl show -p MainPID --value linerate-serve)`,
		"700 linerate-serve", "600 linerate-serve", "linerate-serve")
	h.says(`linerate peers list --json | grep -o '"last_use_address":"[^"]*"'`, `"last_use_address":"127.0.0.1"`)

	// Each way in which serve ends leaves the port, or opens it again, and the key.
	h.says(`systemctl --quiet stop linerate-serve.service 2>/dev/null; `+figure, `"transactions_per_second"`)
	h.says(`systemctl kill --signal=KILL linerate-serve.service; `+figure, `"transactions_per_second"`)
	h.says(`systemctl stop linerate-serve.socket linerate-serve.service; systemctl start linerate-serve.socket
		`+figure,
		`"transactions_per_second"`)

	// A serve that runs takes over the change within a second; until then it ends the peer's test.
	h.says(`linerate peers revoke office >/dev/null
		until `+measure+` 2>&1 >/dev/null | grep -q 'wrong key'; do sleep 1; done
		`+measure+` 2>&1 >/dev/null | grep -o '"exit_status":[0-9]*'`, `"exit_status":10`)
	h.sh("systemctl stop linerate-serve.socket linerate-serve.service; rm /run/office.key")
	h.says("systemctl show -p Result linerate-serve.service linerate-serve.socket | grep .",
		"Result=success", "Result=success")
	h.passed("far side")
}
