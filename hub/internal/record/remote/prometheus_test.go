package remote_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/hub/internal/record/remote"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host/sample"
)

// TestPrometheus sends to Debian's Prometheus, and queries what it got.
func TestPrometheus(t *testing.T) {
	path := testenv.Program(t, "prometheus")
	address := fmt.Sprint("127.0.0.1:", testenv.FreePorts(t, 1))
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, path, "--config.file=/dev/null", "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--web.enable-remote-write-receiver")
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	// The server is still starting: the writer retries until it answers.
	w := start(t, remote.Options{URL: "http://" + address + "/api/v1/write", Gather: 5 * time.Second})
	begin := time.Now().Add(-time.Minute).Truncate(time.Second)
	for i := range 60 {
		r := reading(i)
		r.Time = begin.Add(time.Duration(i) * time.Second)
		if i == 30 {
			r.Ended = []*sample.Series{eth1}
		}
		if i >= 30 {
			r.Points = r.Points[:1]
		}
		w.Append(r)
	}
	closing, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	if err := w.Close(closing); err != nil {
		t.Fatalf("%v: %+v", err, w.Status())
	}
	query := func(q string) string {
		at := fmt.Sprint(begin.Add(59 * time.Second).Unix())
		resp, err := http.Get("http://" + address + "/api/v1/query?" + url.Values{"query": {q}, "time": {at}}.Encode())
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Data struct {
				Result []struct {
					Metric map[string]string
					Value  [2]any
				}
			}
		}
		if err := json.Unmarshal(body, &doc); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		var out []string
		for _, r := range doc.Data.Result {
			out = append(out, fmt.Sprint(r.Metric["host"], " ", r.Metric["interface"], " ", r.Value[1]))
		}
		return strings.Join(out, ", ")
	}
	for q, want := range map[string]string{
		"linerate_interface_receive_bytes_total":                        "near eth0 59",
		"count_over_time(linerate_interface_receive_bytes_total[2m])":   "near eth0 60, near eth1 30",
		"rate(linerate_interface_receive_bytes_total[30s])":             "near eth0 1",
		"sum_over_time(linerate_interface_receive_bytes_total[2m] @ 0)": "",
	} {
		if diff := cmp.Diff(want, query(q)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", q, diff)
		}
	}
}
