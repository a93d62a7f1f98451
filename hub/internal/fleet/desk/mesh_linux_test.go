package desk

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// inWorld marks the process whose network namespace holds the bridges of a test.
const inWorld = "LINERATE_FLEET_WORLD"

// inside runs a test again in a network namespace of its own. It returns true there.
func inside(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inWorld) != "" {
		return true
	}
	testenv.Need(t, testenv.NetNS)
	for _, program := range []string{"ip", "nft"} {
		testenv.Program(t, program)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), own, "-test.run", "^"+t.Name()+"$", "-test.v", "-test.timeout", "1h")
	c.Env = append(os.Environ(), inWorld+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("in its namespace: %v", err)
	}
	return false
}

// world is racks of hosts around one switch: a bridge for each rack, one in the middle.
type world struct {
	t     *testing.T
	d     *running
	names []string // of the hosts, and of their ports
	racks []string // of each host
	pids  map[string]int
	lines []line // to each host's process, which says how late it was
}

// line is the output and the input of a host's process.
type line struct {
	from *bufio.Reader
	to   io.Writer
}

// late returns the longest that a host was late since the last call: it had no CPU time.
func (w *world) late() (most time.Duration) {
	w.t.Helper()
	for i, l := range w.lines {
		var ms int64
		_, err := io.WriteString(l.to, "late\n")
		if err == nil {
			_, err = fmt.Fscanln(l.from, &ms)
		}
		if err != nil {
			w.t.Fatalf("host %s: %v", w.names[i], err)
		}
		most = max(most, time.Duration(ms)*time.Millisecond)
	}
	return most
}

// run runs a program with an input.
func run(t *testing.T, in string, words ...string) {
	t.Helper()
	c := exec.Command(words[0], words[1:]...)
	c.Stdin = strings.NewReader(in)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
}

// build makes racks with perRack hosts each, and waits until the hub knows all of them.
func build(t *testing.T, racks, perRack int) *world {
	t.Helper()
	w := &world{t: t, pids: make(map[string]int)}
	run(t, "link set lo up\nlink add mid type bridge\nlink set mid up\naddress add 10.77.0.1/16 dev mid\n", "ip", "-batch",
		"-")
	o := options(t)
	o.Join, o.Bus = "10.77.0.1:7072", "10.77.0.1:7073"
	w.d = start(t, o)
	dir := t.TempDir()
	keyFile, rules := filepath.Join(dir, "key"), filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(keyFile, []byte(wire.NewKey().String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rules, []byte("version: 1\ntests:\n  max_share_ratio: 1.0\n  max_seconds_per_hour: 600\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var ready sync.WaitGroup
	for r := range racks {
		rack := fmt.Sprint("r", r)
		run(t, fmt.Sprintf("link add %[1]s type bridge\nlink set %[1]s up\nlink add %[1]s-up type veth peer name %[1]s-mid\n"+
			"link set %[1]s-up master %[1]s up\nlink set %[1]s-mid master mid up\n", rack), "ip", "-batch", "-")
		address, token := invite(t, o.Dir, Request{Uses: perRack, Labels: map[string]string{"rack": rack, "site": "here"}})
		for h := range perRack {
			name := fmt.Sprintf("h%d-%d", r, h)
			ip := fmt.Sprintf("10.77.%d.%d", r+1, h+1)
			b, _ := json.Marshal(memberOf{Name: name, Home: filepath.Join(dir, name), Address: address, Token: token.String(),
				Serve: ip + ":5201", KeyFile: keyFile, Policy: rules})
			c := exec.Command(own)
			c.Env = append(os.Environ(), asMember+"="+string(b), "GOMEMLIMIT=24MiB")
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
			c.Stderr = os.Stderr
			in, err := c.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := c.StdoutPipe()
			if err == nil {
				err = c.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = in.Close(); _ = c.Wait() })
			w.pids[name] = c.Process.Pid
			pid := fmt.Sprint(c.Process.Pid)
			run(t, fmt.Sprintf("link add %[1]s type veth peer name eth0 netns %[2]s\nlink set %[1]s master %[3]s up\n", name,
				pid, rack), "ip", "-batch", "-")
			run(t, fmt.Sprintf("link set lo up\nlink set eth0 up\naddress add %s/16 dev eth0\n", ip), "nsenter", "-t", pid,
				"-n", "ip", "-batch", "-")
			if _, err := io.WriteString(in, "go\n"); err != nil {
				t.Fatal(err)
			}
			l := line{bufio.NewReader(out), in}
			ready.Go(func() { _, _ = l.from.ReadString('\n') })
			w.lines = append(w.lines, l)
			w.names, w.racks = append(w.names, name), append(w.racks, rack)
		}
	}
	ready.Wait()
	until(t, "facts of all hosts", func() bool {
		n := 0
		for _, h := range w.d.hosts.Hosts() {
			if h.Facts != nil {
				n++
			}
		}
		return n == len(w.names)
	})
	return w
}

// drop drops a part of the pings that pass a port in either direction; 0 mends it. The bus and the
// control connections pass: a fault of the measured path is not one of the way to the hub.
func (w *world) drop(port string, percent int) {
	w.t.Helper()
	rules := "table bridge fault\ndelete table bridge fault\n"
	if percent > 0 {
		rules += fmt.Sprintf("table bridge fault { chain c { type filter hook forward priority 0; policy accept;\n"+
			"iifname %[1]q ip protocol { udp, icmp } numgen random mod 100 < %[2]d drop\n"+
			"oifname %[1]q ip protocol { udp, icmp } numgen random mod 100 < %[2]d drop\n}\n}\n", port, percent)
	}
	run(w.t, rules, "nft", "-f", "-")
}

// measure asks for a mesh as the command does.
func (w *world) measure(m MeshRequest) *report.FleetMeasureDocument {
	w.t.Helper()
	// The neighbours of all namespaces share one table of 1024 places (neigh/default/gc_thresh3): what
	// hosts of earlier meshes left there would make others unreachable.
	for _, pid := range w.pids {
		run(w.t, "", "nsenter", "-t", fmt.Sprint(pid), "-n", "ip", "neigh", "flush", "all")
	}
	ctx, stop := context.WithTimeout(w.t.Context(), 10*time.Minute)
	defer stop()
	var doc report.FleetMeasureDocument
	if err := Call(ctx, w.d.o.Dir, Request{Do: DoMeasure, Mesh: &m}, &doc, nil); err != nil {
		w.t.Fatal(err)
	}
	valid(w.t, &doc)
	return &doc
}

// held loads the fleet while another program has the lease of one host: no load test touches that
// host, in either role, and all others are made.
func (w *world) held(t *testing.T, name string) {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("nsenter", "-t", fmt.Sprint(w.pids[name]), "-n", own)
	c.Env = append(os.Environ(), asHolder+"=1")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if said, err := bufio.NewReader(out).ReadString('\n'); err != nil || said != "<nil>\n" {
		t.Fatalf("the lease of an idle host: %s, %v", said, err)
	}
	doc := w.measure(MeshRequest{Partners: 1, Loads: 2, MS: 200, Seed: 3, Uplink: 100, Site: 100})
	_ = in.Close()
	_ = c.Wait() // it ends with its input
	elsewhere := 0
	for _, r := range doc.Results {
		if r.Test != "stream" || r.Error != "" && !starved(r) {
			continue
		}
		if doc.Hosts[r.From].Name == name || doc.Hosts[r.To].Name == name {
			t.Errorf("%s is in two load tests", name)
		}
		if r.Stage == 1 { // on a busy machine a rate can be suspect, and is measured again
			elsewhere++
		}
	}
	if doc.Left < 2 || doc.Refused < 2*4 || elsewhere != len(w.names)-2 {
		t.Errorf("%d load tests elsewhere, %d left, %d times busy", elsewhere, doc.Left, doc.Refused)
	}
}

// starved reports whether a test was made that the program does not judge, because the host that
// measured had no CPU time meanwhile.
func starved(r report.FleetMeasured) bool { return strings.HasPrefix(r.Error, "not judged: ") }

// culprit returns the first thing that a mesh accuses.
func culprit(doc *report.FleetMeasureDocument) string {
	if len(doc.Culprits) == 0 {
		return "nothing"
	}
	return doc.Culprits[0].Text
}

// TestMesh: real nodes and responders in namespaces measure each other. A host and an uplink that
// lose packets are named, and nothing is named without a fault.
func TestMesh(t *testing.T) {
	testenv.Need(t, testenv.Long) // 6 s of CPU time: real programs
	if !inside(t) {
		return
	}
	w := build(t, 3, 4)
	doc := w.measure(MeshRequest{Partners: 3, Loads: 1, MS: 300, Seed: 1})
	loads, moved := 0, 0
	for _, r := range doc.Results {
		if r.Error != "" && !starved(r) {
			t.Errorf("%s to %s: %s", doc.Hosts[r.From].Name, doc.Hosts[r.To].Name, r.Error)
		}
		if r.Throughput != nil || r.Test == string(traffic.Stream) && starved(r) {
			loads++
		}
		if r.Throughput != nil && *r.Throughput > 0 { // within 0.3 s a paused host moves nothing
			moved++
		}
	}
	if len(doc.Results) < 12*3/2+6 || loads < 6 || moved == 0 {
		t.Errorf("%d tests, %d of them loads, %d with bytes", len(doc.Results), loads, moved)
	}
	w.held(t, "h0-1")
	// Rates between namespaces of one machine are those of its scheduler: only pings are judged.
	for _, c := range []struct {
		port string
		want string
	}{{"", "nothing"}, {"h1-2", "host h1-2"}, {"r2-up", "rack here/r2"}} {
		if c.port != "" {
			w.drop(c.port, 60)
		}
		for deadline := time.Now().Add(10 * time.Minute); ; {
			w.late()
			doc := w.measure(MeshRequest{Partners: 5, Seed: 2})
			got, late := culprit(doc), w.late()
			if got == c.want {
				break
			}
			// A host that was paused for so long has not answered half of the pings of a test.
			if late < 100*time.Millisecond || time.Now().After(deadline) {
				t.Errorf("%s loses packets: %s is accused, want %s; %v late; %+v", c.port, got, c.want, late, doc.Culprits)
				break
			}
			t.Logf("%s is accused, and a host was %v late: the mesh is measured again", got, late)
		}
		if g := w.d.Mesh("", "", 0, 0); g.Time == nil || len(g.Rows) != 3 {
			t.Errorf("the page has %+v", g)
		}
		w.drop("", 0)
	}
	if _, err := os.Stat(filepath.Join(w.d.o.Dir, meshFile)); err != nil {
		t.Error(err)
	}
}
