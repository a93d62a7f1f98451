package cli

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// TestStatisticsOfARelativeSocket checks that the path of a control socket works from its own
// directory, where it looks like a host.
func TestStatisticsOfARelativeSocket(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	l, err := net.Listen("unix", "ctl")
	if err != nil {
		t.Skipf("no sockets in the file system: %v", err)
	}
	defer l.Close()
	for given, want := range map[string]string{"ctl": filepath.Join(dir, "ctl"), "host:8953": "host:8953",
		"http://host:8053": "http://host:8053", "": ""} {
		f := resolverDiagnoseFlags{duration: time.Second}
		f.target.Endpoint = given
		if err := f.check(&cobra.Command{}, nil); err != nil || f.target.Endpoint != want {
			t.Errorf("%q: %q, %v; want %q", given, f.target.Endpoint, err, want)
		}
	}
}
