package stamp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

func TestMain(m *testing.M) { traffictest.Main(m) }

// startServer serves on loopback until the test ends, and returns the server and a function that
// ends it early.
func startServer(t testing.TB, o ServerOptions) (s *Server, stop func()) {
	t.Helper()
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	if o.Gate == nil {
		o.Gate = admission.New(admission.Limits{PacketsPerSecond: 1e6})
	}
	s, err := Listen(t.Context(), o)
	if err != nil && strings.HasPrefix(o.Address, "[::1]") {
		testenv.Missing(t, testenv.Network, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, traffictest.Serve(t, s)
}

// pythonReflector runs the independent reflector until the test ends and returns its address.
func pythonReflector(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := exec.CommandContext(ctx, testenv.Program(t, "python3"),
		append([]string{"testdata/peer.py", "reflect"}, args...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // which ends it
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("peer: %v\n%s", err, stderr.String())
		}
		cancel()
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("peer says no port: %v", err)
	}
	return "127.0.0.1:" + strings.TrimSpace(port)
}

// answer is the independent sender's report on one packet.
type answer struct {
	Sent, Bytes     int
	Seq, Sender     uint32
	SSID            int
	TTL             *int
	Hex, Request    string
	Zero, Echo, MAC bool
	TLVMAC          bool `json:"tlv_mac"`
	Z, Order        bool
	Multiplier      int
	RTT             int64
	Error           string
}

// pythonSender runs the independent sender and returns its reports.
func pythonSender(t *testing.T, mode string, s *Server, count int, args ...string) []answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args = append([]string{"testdata/peer.py", "send", mode, "127.0.0.1", fmt.Sprint(s.Addr().Port()),
		fmt.Sprint(count)}, args...)
	cmd := exec.CommandContext(ctx, testenv.Program(t, "python3"), args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("peer: %v\n%s", err, stderr.String())
	}
	var answers []answer
	for line := range strings.Lines(string(out)) {
		var a answer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
	if len(answers) != count {
		t.Fatalf("%d answers of %d", len(answers), count)
	}
	return answers
}
