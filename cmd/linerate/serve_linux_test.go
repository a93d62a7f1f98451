package main_test

func (h *host) shipFarSide() {
	h.t.Helper()
	h.ship("sysusers.d/linerate.conf", "/etc/sysusers.d")
	h.ship("systemd/linerate-serve.socket", "/etc/systemd/system")
	h.ship("systemd/linerate-serve.service", "/etc/systemd/system")
	h.sh("systemd-sysusers; systemctl daemon-reload")
}

// measureWith returns the command that measures the far side with the key of a file, and one that
// prints the name of its figure, or its whole answer without one. An emulator may need longer than
// the usual 10 s to start serve for the first connection.
func measureWith(keyFile string) (measure, figure string) {
	measure = "linerate measure 127.0.0.1 --test rr --duration 1s --connect-timeout 5m --key-file " + keyFile + " --json"
	return measure, `said=$(` + measure + ` 2>&1); case $said in
		*'"transactions_per_second"'*) echo '"transactions_per_second"' ;;
		*) echo "$said" ;;
		esac`
}

// farSide starts `linerate serve` by the units that are shipped. The first connection starts it, as
// a user without any right; the key of a peer outlives its end, its crash and its socket; and a
// revoked key opens nothing.
func (h *host) farSide() {
	h.t.Helper()
	h.shipFarSide()
	h.sh(`systemctl start linerate-serve.socket; umask 077
		linerate peers add office --address 127.0.0.1 --json | grep -o '"key":"[^"]*"' | cut -d'"' -f4 >/run/office.key`)
	const active = "systemctl is-active linerate-serve.socket linerate-serve.service || true"
	h.says(active, "active", "inactive")

	measure, figure := measureWith("/run/office.key")
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

// keepFarSide enables the far side for the next boots, with one peer that may measure and one whose
// key has been revoked. Their key files are on the disk.
func (h *host) keepFarSide() {
	h.t.Helper()
	h.shipFarSide()
	h.sh(`umask 077
		for peer in desk left; do
			linerate peers add $peer --address 127.0.0.1 --json | grep -o '"key":"[^"]*"' | cut -d'"' -f4 >/var/lib/$peer.key
		done
		linerate peers revoke left; systemctl enable --quiet --now linerate-serve.socket`)
	_, figure := measureWith("/var/lib/desk.key")
	h.says(figure, `"transactions_per_second"`)
	h.sh("systemctl --quiet stop linerate-serve.service 2>/dev/null; sync")
	h.passed("far side for the next boots")
}

// farSideIsBack checks what a boot made of it: the socket waits, the first connection starts serve,
// the peer's key still works, and the revoked one is still refused. Until then, the record of the
// peer's last use is from before the boot.
func (h *host) farSideIsBack() {
	h.t.Helper()
	h.says("systemctl is-active linerate-serve.socket linerate-serve.service || true", "active", "inactive")
	h.says(`linerate peers list --json | grep -o '"name":"[dl][^"]*"\|"last_use_address":"127.0.0.1"'`,
		`"name":"desk"`, `"last_use_address":"127.0.0.1"`)
	_, figure := measureWith("/var/lib/desk.key")
	h.says(figure+"; systemctl is-active linerate-serve.service", `"transactions_per_second"`, "active")
	refused, _ := measureWith("/var/lib/left.key")
	h.says(refused+` 2>&1 >/dev/null | grep -o 'wrong key\|"exit_status":[0-9]*' | sort -u`,
		`"exit_status":10`, "wrong key")
	h.passed("far side after a boot")
}

// endFarSide leaves the units and the user, as a part that only starts them would.
func (h *host) endFarSide() {
	h.t.Helper()
	h.sh(`systemctl disable --quiet --now linerate-serve.socket
		systemctl --quiet stop linerate-serve.service 2>/dev/null
		rm -r /var/lib/linerate-serve /var/lib/desk.key /var/lib/left.key`)
}
