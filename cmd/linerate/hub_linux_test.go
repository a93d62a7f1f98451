package main_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/linerate/linerate/internal/lab/guest"
	"github.com/linerate/linerate/internal/wire"
)

// TestAskHubChild is the program that asks a hub in the guest. Without ASK_HUB it does nothing.
func TestAskHubChild(t *testing.T) {
	address := os.Getenv("ASK_HUB")
	if address == "" {
		return
	}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if password := os.Getenv("ASK_HUB_PASSWORD"); password != "" {
		q.SetBasicAuth("x", password)
	}
	// The hub's certificate is its own: browsers trust it by fingerprint, not by an authority.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	r, err := client.Do(q)
	if err != nil {
		fmt.Println("refused:", err)
		return
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	fmt.Println("answer:", r.StatusCode, string(b), err)
}

// hubProgram returns linerate-hub as `make build` builds it.
func hubProgram(t *testing.T) guest.File {
	t.Helper()
	b, err := builtHub()
	if err != nil {
		t.Fatal(err)
	}
	return guest.File{Path: "/usr/local/bin/linerate-hub", Content: b, Mode: 0o755}
}

// askHub returns a script that asks until the answer matches a pattern, and prints the match. The
// test's own patience ends it when no answer matches.
func askHub(password, address, pattern string) string {
	return fmt.Sprintf("(until ASK_HUB_PASSWORD='%s' ASK_HUB='%s' ask -test.run='^TestAskHubChild$' | grep -o '%s'; "+
		"do sleep 1; done)", password, address, pattern)
}

// hub starts the hub by the unit that linerate-hub prints. The hub reports that it is ready, has no
// right beyond its own directory, samples both cards, and continues its history after a kill.
func (h *host) hub() {
	h.t.Helper()
	h.sh(`linerate-hub unit >/etc/systemd/system/linerate-hub.service
		systemctl daemon-reload; systemctl start linerate-hub`)
	h.says("systemctl is-active linerate-hub; systemd-analyze verify linerate-hub.service 2>&1", "active")
	h.confined("linerate-hub")
	const page = "http://127.0.0.1:7071/api/"
	h.says(askHub("", page+"v1/query?query=linerate_interface_info",
		`"driver":"veth","host":"[^"]*","interface":"enp0s[23]"`)+" | grep -o 'enp0s.' | sort", "enp0s2", "enp0s3")
	h.sh(askHub("", page+"v1/query?query=rate(linerate_cpu_seconds_total[10s])", `"mode":"idle"`))
	// systemd starts a killed hub again, and the hub still has its history.
	h.sh(`pid=$(systemctl show -p MainPID --value linerate-hub); systemctl kill --signal=KILL linerate-hub
		until [ "$(systemctl show -p MainPID,ActiveState --value linerate-hub | tr '\n' ' ')" != "$pid active " ] &&
			systemctl is-active --quiet linerate-hub; do sleep 0.5; done`)
	h.sh(askHub("", page+"v1/query?query=count_over_time(linerate_interface_up[1h])%3E3", `"interface":"enp0s2"`))
	h.says(`systemctl show -p NRestarts linerate-hub; systemctl stop linerate-hub
		systemctl show -p Result linerate-hub; stat -c '%a' /var/lib/private/linerate-hub`,
		"NRestarts=1", "Result=success", "700")
	h.passed("hub")
	h.sharedHub()
}

// sharedHub opens the hub to other hosts, and lets it ask the agent and measure, as the hub's guide
// describes: root writes the files, and systemd's dynamic user reads them.
func (h *host) sharedHub() {
	h.t.Helper()
	h.sh("mkdir -p /etc/linerate-hub; (umask 077; echo " + wire.NewKey().String() + " >/etc/linerate-hub/office.key)")
	h.sh(`mkdir -p /etc/systemd/system/linerate-hub.service.d
		cat >/etc/linerate-hub/hub.yaml <<'END'
listen: 0.0.0.0:7071
schedules:
  - {name: office, target: 127.0.0.1, key_file: /run/credentials/linerate-hub.service/office.key, test: rr,
     duration: 1s, every: 10s}
  - {name: gateway, target: "icmp://127.0.0.1", every: 10s}
END
		cat >/etc/systemd/system/linerate-hub.service.d/override.conf <<'END'
[Service]
SupplementaryGroups=linerate
LoadCredential=office.key:/etc/linerate-hub/office.key
END
		systemd-run --quiet --unit=far linerate serve --listen 127.0.0.1:7070 --key $(cat /etc/linerate-hub/office.key)
		systemctl daemon-reload; systemctl start linerate-agent.socket`)
	h.says(`! systemctl start linerate-hub >/dev/null 2>&1; linerate-hub check >/dev/null && echo valid
		until journalctl -u linerate-hub -o cat --no-pager | grep -q 'set a password'; do sleep 0.5; done`, "valid")
	h.sh(`systemctl stop linerate-hub; echo 'correct horse' | linerate-hub password --data /var/lib/linerate-hub
		systemctl start linerate-hub`)
	const page = "https://127.0.0.1:7071/api/"
	h.says(askHub("", page+"v1/query?query=up", "answer: 401"), "answer: 401")
	const password = "correct horse"
	h.sh(askHub(password, page+`v1/query?query=linerate_measurement_success%7Btest="rr"%7D==1`, `"test":"rr"`))
	// Debian 12 lets only root ping. The hub reports that and the remedy, which the test applies.
	h.sh(askHub(password, page+"linerate/v1/status",
		"measurement gateway: .* let users ping: sysctl -w net.ipv4.ping_group_range="))
	h.sh(`sysctl -qw net.ipv4.ping_group_range="0 2147483647"`)
	h.sh(askHub(password, page+`v1/query?query=linerate_measurement_success%7Btest="ping"%7D==1`, `"test":"ping"`))
	h.says(askHub(password, page+"linerate/v1/events?start=0&end=4000000000&kind=change", "linerate undo [0-9]*")+
		" | head -n1", "linerate undo 0001")
	h.sh("systemctl stop linerate-hub linerate-agent.socket linerate-agent.service far")
	h.passed("hub for other hosts")
}

// node makes the host a member of a fleet and serves it by the unit that linerate-hub prints: as a
// dynamic user, which asks the agent of root for the journal. It comes back after a kill, rests
// while the host is no member, and serves a host that joins again.
func (h *host) node() {
	h.t.Helper()
	h.ship("systemd/linerate-node-orders.conf", "/etc/systemd/system/linerate-node.service.d")
	h.sh(`linerate-hub unit --node | sed 's/^RestartSec=.*/RestartSec=1/' >/etc/systemd/system/linerate-node.service
		linerate-hub unit >/etc/systemd/system/linerate-hub.service
		mkdir -p /etc/linerate-hub; echo "fleet: {join: 127.0.0.1:7072}" >/etc/linerate-hub/hub.yaml
		systemctl daemon-reload; systemctl start linerate-agent.socket linerate-hub`)
	h.says("systemctl start linerate-node; systemctl is-active linerate-node || true", "inactive")
	const (
		join = `until line=$(linerate-hub invite); do sleep 1; done
			linerate-hub join $(echo "$line" | sed -n 's/^linerate-hub join //p'); systemctl start linerate-node; `
		asked = `while sleep 1; do linerate-hub fleet ask state --json >state || continue
			! grep -q '"kept_changes":1' state || break; done; `
		pid = "systemctl show -p MainPID --value linerate-node"
	)
	h.sh(join + asked)
	h.confined("linerate-node")
	h.sh("pid=$(" + pid + "); systemctl kill --signal=KILL linerate-node; until [ $(" + pid + ") != $pid ] && " +
		"systemctl is-active --quiet linerate-node; do sleep 1; done; " + asked)
	h.says(`linerate-hub leave | grep -o 'fleet remove [0-9A-Z]*' >forget
		until [ $(systemctl show -p ActiveState --value linerate-node) = inactive ]; do sleep 1; done
		systemctl is-system-running`, "running")
	h.sh("linerate-hub $(cat forget); " + join + asked)
	h.sh("systemctl stop linerate-node linerate-hub linerate-agent.socket linerate-agent.service")
	h.passed("node")
}
