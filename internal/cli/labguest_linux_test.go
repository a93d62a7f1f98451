package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/cli"
	"github.com/linerate/linerate/internal/report"
)

// One case in a guest, all the way: the guest is booted with the test binary in it, the world of
// two cards is made there, its fault is a setting of the whole machine, and the verdict comes back.
// That verdicts are right is what the matrix is for; here it is that there is one of that kernel.
func TestLabMatrixInGuest(t *testing.T) {
	t.Parallel()
	var out, errw bytes.Buffer
	status := cli.Main([]string{"linerate", "lab", "matrix", "--json", "--only", "^guest-conntrack-full$", "--level",
		"gross"}, strings.NewReader(""), &out, &errw)
	if err := report.Validate(out.Bytes()); err != nil {
		t.Fatalf("exit status %d, %v\n%s%s", status, err, &out, &errw)
	}
	var d report.MatrixDocument
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Cases) != 1 {
		t.Fatalf("%d cases, want one\n%s", len(d.Cases), &out)
	}
	c := d.Cases[0]
	if c.Skipped && !strings.Contains(os.Getenv("LINERATE_REQUIRE"), "guest") {
		t.Skip(c.Reason)
	}
	if c.Skipped || c.Ground != "guest" || c.Kernel == "" || c.Kernel == d.Host.Kernel || len(c.Found) == 0 {
		t.Errorf("exit status %d; want a verdict from the kernel of a guest\n%s%s", status, &out, &errw)
	}
}
