package main_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/linerate/linerate/internal/lab/guest"
)

// TestAskHubChild is the program that asks a hub in the guest; by itself it tests nothing.
func TestAskHubChild(t *testing.T) {
	address := os.Getenv("ASK_HUB")
	if address == "" {
		return
	}
	r, err := http.Get(address)
	if err != nil {
		fmt.Println("refused:", err)
		return
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	fmt.Println("answer:", r.StatusCode, string(b), err)
}

// hubProgram builds linerate-hub as `make build` does.
func hubProgram(t *testing.T) guest.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "linerate-hub")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", name, "../linerate-hub")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return guest.File{Path: "/usr/local/bin/linerate-hub", Content: b, Mode: 0o755}
}

// hub starts the hub by the unit that it prints itself: it is told ready, has no right but its own directory, samples both cards, and goes on where it was killed.
func (h *host) hub() {
	h.t.Helper()
	h.sh("linerate-hub unit >/etc/systemd/system/linerate-hub.service; systemctl daemon-reload; systemctl start linerate-hub")
	h.says("systemctl is-active linerate-hub; systemd-analyze verify linerate-hub.service 2>&1", "active")
	h.says("grep -h '^Cap\\|^NoNewPrivs\\|^Seccomp:' /proc/$(systemctl show -p MainPID --value linerate-hub)/status | tr '\\t' ' '",
		"CapInh: 0000000000000000", "CapPrm: 0000000000000000", "CapEff: 0000000000000000", "CapBnd: 0000000000000000", "CapAmb: 0000000000000000",
		"NoNewPrivs: 1", "Seccomp: 2")
	ask := "(for i in $(seq 60); do ASK_HUB='http://127.0.0.1:7071/api/v1/query?query=%s' ask -test.run='^TestAskHubChild$' | grep -o '%s' && exit; sleep 1; done; exit 1)"
	h.says(fmt.Sprintf(ask, "linerate_interface_info", `"driver":"e1000","host":"[^"]*","interface":"enp0s[23]"`)+" | grep -o 'enp0s.' | sort", "enp0s2", "enp0s3")
	h.sh(fmt.Sprintf(ask, "rate(linerate_cpu_seconds_total[10s])", `"mode":"idle"`))
	// What is killed is started again, and knows what it knew.
	h.sh(`pid=$(systemctl show -p MainPID --value linerate-hub); systemctl kill --signal=KILL linerate-hub
		until [ "$(systemctl show -p MainPID,ActiveState --value linerate-hub | tr '\n' ' ')" != "$pid active " ] && systemctl is-active --quiet linerate-hub; do sleep 0.5; done`)
	h.sh(fmt.Sprintf(ask, "count_over_time(linerate_interface_up[1h])%3E3", `"interface":"enp0s2"`))
	h.says("systemctl show -p NRestarts linerate-hub; systemctl stop linerate-hub; systemctl show -p Result linerate-hub; stat -c '%a' /var/lib/private/linerate-hub",
		"NRestarts=1", "Result=success", "700")
	h.passed("hub")
}
