package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/lab/link"
	"github.com/linerate/linerate/internal/lab/scenario"
)

// patience bounds every wait for an event. It guards against a hang and decides nothing else.
const patience = 2 * time.Minute

// interrupted is the exit status of a command that was interrupted.
const interrupted = 130

// standIn is what "linerate" does in the worlds of these tests.
func standIn(args []string) int {
	if handled, status := fake(args); handled {
		return status
	}
	switch args[0] {
	case "wait": // waits for an interrupt, also where the shell that began the test ignores it
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, os.Interrupt)
		fmt.Println("ready")
		<-asked
		return interrupted
	case "watch": // watches the machine until the end of its input
		disturbed := Watch()
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		fmt.Println(disturbed())
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "fail":
		fmt.Fprintln(os.Stderr, "as asked")
		return 3
	case "sink": // serves one TCP connection and prints the number and the sum of its bytes
		l, err := net.Listen("tcp", ":5000")
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("ready")
		c, err := l.Accept()
		if err != nil {
			fmt.Println(err)
			return 1
		}
		var n, sum int
		buf := make([]byte, 64<<10)
		for {
			k, err := c.Read(buf)
			for _, b := range buf[:k] {
				sum = sum*31 + int(b)
			}
			n += k
			if err != nil {
				break
			}
		}
		fmt.Println(n, uint32(sum))
	case "source": // sends pseudo-random bytes
		c, err := net.Dial("tcp", net.JoinHostPort(args[1], "5000"))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		total, _ := strconv.Atoi(args[2])
		buf := make([]byte, 64<<10)
		sum, x := 0, uint32(1)
		for n := 0; n < total; n += len(buf) {
			buf = buf[:min(len(buf), total-n)]
			for i := range buf {
				x = x*1664525 + 1013904223
				buf[i] = byte(x >> 24)
				sum = sum*31 + int(buf[i])
			}
			if _, err := c.Write(buf); err != nil {
				fmt.Println(err)
				return 1
			}
		}
		_ = c.Close()
		fmt.Println(total, uint32(sum))
	case "reflect": // sends every datagram back
		c, err := net.ListenPacket("udp", ":5001")
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("ready")
		for buf := make([]byte, 2048); ; {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return 1
			}
			_, _ = c.WriteTo(buf[:n], from)
		}
	case "trip": // sends datagrams to reflect until one comes back
		c, err := net.Dial("udp", net.JoinHostPort(args[1], "5001"))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		// A datagram may be lost while addresses are still tentative, so it is sent again.
		for end := time.Now().Add(patience); ; {
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			if _, err = c.Write([]byte("trip")); err == nil {
				if _, err = c.Read(make([]byte, 16)); err == nil {
					break
				}
			}
			if time.Now().After(end) {
				fmt.Println(err)
				return 1
			}
		}
		fmt.Println("back")
	case "terminal": // lends its terminal to a command in a world, then reads from the terminal itself
		w, err := Up(context.Background(), scenario.World{Topology: scenario.Pair})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		c := w.Near().Exec(context.Background(), "sh", "-c", "read line; echo near read $line")
		c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := c.Run(); err != nil {
			fmt.Println(err)
			return 1
		}
		var line string
		_, _ = fmt.Scanln(&line)
		fmt.Println("maker read", line)
		_ = w.Close()
	case "hold": // makes a world, prints the process number of its near host, and waits to be killed
		w, err := Up(context.Background(), scenario.World{Topology: scenario.Pair})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(w.Near().PID)
		<-context.Background().Done() // never; unlike after `select {}`, the collector leaves w alone
		_ = w.Close()
	}
	return 0
}

// up makes a world that ends with the test.
func up(t *testing.T, w scenario.World) *Running {
	t.Helper()
	testenv.Need(t, testenv.NetNS)
	r, err := Up(t.Context(), w)
	if errors.Is(err, ErrNoNamespaces) {
		testenv.Missing(t, testenv.NetNS, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, w := range r.Warnings {
		t.Log(w)
	}
	return r
}

// output runs a command and returns its trimmed stdout.
func output(t *testing.T, c *Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", c.Args, err, out, &stderr)
	}
	return strings.TrimSpace(string(out))
}

func TestNetnsCommands(t *testing.T) {
	r := up(t, scenario.World{Topology: scenario.Pair})
	ctx := t.Context()
	if got := output(t, r.Near().Exec(ctx, "uname", "-n")) +
		output(t, r.Far().Exec(ctx, "hostname")); got != "nearfar" {
		t.Errorf("host names %q", got)
	}
	c := r.Far().Command(ctx, "echo")
	c.Stdin = strings.NewReader("through the world")
	if got := output(t, c); got != "through the world" {
		t.Errorf("echo printed %q", got)
	}
	c = r.Far().Exec(ctx, "sh", "-c", "pwd; echo $LAB")
	c.Dir, c.Env = "/", []string{"LAB=here"}
	if got := output(t, c); got != "/\nhere" {
		t.Errorf("directory and environment: %q", got)
	}

	var both bytes.Buffer
	c = r.Near().Command(ctx, "fail")
	c.Stdout, c.Stderr = &both, &both
	var exit *ExitError
	if err := c.Run(); !errors.As(err, &exit) || exit.Code != 3 || both.String() != "as asked\n" {
		t.Errorf("failing command: %v %q", err, both.String())
	}
	if err := r.Near().Exec(ctx, "no-such-program").Run(); !errors.Is(err, fs.ErrNotExist) &&
		!strings.Contains(fmt.Sprint(err), "not found") {
		t.Errorf("missing program: %v", err)
	}
	// The host has a pid namespace and a /proc of its own, and so fewer than ten processes.
	if len(r.Warnings) == 0 {
		if got := output(t, r.Near().Exec(ctx, "sh", "-c", "echo /proc/[0-9]* | wc -w")); len(got) > 1 {
			t.Errorf("%s processes in near", got)
		}
	}
	ended, stop := context.WithCancel(ctx)
	c = r.Near().Command(ended, "wait")
	c.Stdout = &firstWord{wrote: stop}
	if err := c.Run(); !errors.Is(err, context.Canceled) || !errors.As(err, &exit) || exit.Code != interrupted {
		t.Errorf("cancelled command: %v", err)
	}
}

// The agent reaps orphans, and they do not delay a command's Wait.
func TestNetnsOrphans(t *testing.T) {
	r := up(t, scenario.World{Topology: scenario.Pair})
	ctx := t.Context()
	output(t, r.Near().Exec(ctx, "sh", "-c", "for i in 1 2 3 4 5; do (sleep 0.01 &) ; done"))
	for range 20 {
		if err := r.Near().Exec(ctx, "true").Run(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNetnsSettingsAndSnapshot(t *testing.T) {
	r := up(t, scenario.World{Topology: scenario.Pair,
		Settings: map[string][]scenario.Setting{
			"all": {{Knob: "sysctl:net.ipv4.tcp_congestion_control", Value: "reno"}}}})
	ctx := t.Context()
	before, err := r.Far().Settings(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(before) < 200 || before["sysctl:net.ipv4.tcp_congestion_control"] != "reno" {
		t.Errorf("%d settings, congestion control %q", len(before), before["sysctl:net.ipv4.tcp_congestion_control"])
	}
	change := []scenario.Setting{
		{Knob: "sysctl:net.ipv4.tcp_rmem", Value: "4096 65536 131072"},
		{Knob: "route:10.77.0.0/24/window", Value: "16384"},
		{Knob: "link:eth0/mtu", Value: "1400"},
		{Knob: "ethtool:eth0/feature.tx-tcp-segmentation", Value: "off"},
	}
	if err := r.Far().Set(ctx, change...); err != nil {
		t.Fatal(err)
	}
	after, err := r.Far().Settings(ctx)
	if err != nil {
		t.Fatal(err)
	}
	changed := map[string]bool{}
	for k, v := range after {
		if before[k] != v {
			changed[k] = true
		}
	}
	for _, k := range []string{"sysctl:net.ipv4.tcp_rmem", "route:10.77.0.0/24 dev eth0", "route:10.77.0.0/24/window",
		"link:eth0/mtu", "ethtool:eth0/feature.tx-tcp-segmentation"} {
		if !changed[k] {
			t.Errorf("%s unchanged: %q", k, after[k])
		}
	}
	if near, _ := r.Near().Settings(ctx); near["sysctl:net.ipv4.tcp_rmem"] == after["sysctl:net.ipv4.tcp_rmem"] {
		t.Error("near has far's setting")
	}
	for _, bad := range []scenario.Setting{{Knob: "sysctl:net.no.such", Value: "1"},
		{Knob: "link:eth0/colour", Value: "1"}, {Knob: "link:eth0/mtu", Value: "many"}, {Knob: "nonsense", Value: ""},
		{Knob: "ethtool:eth0/feature.tso", Value: "maybe"}} {
		if err := r.Far().Set(ctx, bad); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
	if err := r.Far().Set(ctx, scenario.Setting{Knob: "sysctl:net.no.such", Value: "1"}); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("missing sysctl: %v", err)
	}
}

func TestNetnsRouterWorldByNameAndBothFamilies(t *testing.T) {
	r := up(t, scenario.World{Topology: scenario.Router, Link: &scenario.Link{ToFar: link.Params{DelaySeconds: 0.002}}})
	reflecting(t, r)
	for _, target := range []string{"far", r.Far().Address, "fd77:6c72:0:2::2"} {
		if got := output(t, r.Near().Command(t.Context(), "trip", target)); got != "back" {
			t.Errorf("datagram to %s: %s", target, got)
		}
	}
	if c, err := r.LinkCounts(t.Context()); err != nil || c.Out.OutPackets < 3 || c.Back.OutPackets < 3 {
		t.Errorf("the link's counters lack three datagrams or their replies: %+v, %v", c, err)
	}
	if r.Host("router") == nil || r.Host("unknown") != nil {
		t.Error("hosts by name")
	}
}

// transfer sends bytes from near to far and checks that they arrive unchanged and without a wrong
// checksum.
func transfer(t *testing.T, r *Running, bytes int) {
	t.Helper()
	ctx := t.Context()
	sink := r.Far().Command(ctx, "sink")
	read, write := io.Pipe()
	sink.Stdout = write
	if err := sink.Start(); err != nil {
		t.Fatal(err)
	}
	var first, got string
	if _, err := fmt.Fscanln(read, &first); err != nil || first != "ready" {
		t.Fatalf("sink: %q %v", first, err)
	}
	done := make(chan struct{})
	go func() { defer close(done); b, _ := io.ReadAll(read); got = strings.TrimSpace(string(b)) }()
	want := output(t, r.Near().Command(ctx, "source", r.Far().Address, strconv.Itoa(bytes)))
	if err := sink.Wait(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	<-done
	if got != want {
		t.Errorf("sent %s, arrived %s", want, got)
	}
	snmp := output(t, r.Far().Exec(ctx, "cat", "/proc/net/snmp"))
	if n := column(snmp, "Tcp:", "InCsumErrors"); n != "0" {
		t.Errorf("%s TCP segments with a wrong checksum", n)
	}
}

// column reads a counter of /proc/net/snmp.
func column(snmp, line, name string) string {
	var names []string
	for l := range strings.Lines(snmp) {
		f := strings.Fields(l)
		if f[0] != line {
			continue
		}
		if names == nil {
			names = f
			continue
		}
		for i, n := range names {
			if n == name {
				return f[i]
			}
		}
	}
	return ""
}

// The kernel must accept the rest of a super-frame after a loss: the content arrives complete and
// no checksum is wrong.
func TestNetnsLossyLinkKeepsContent(t *testing.T) {
	r := up(t, scenario.World{Topology: scenario.Pair,
		Link: &scenario.Link{ToFar: link.Params{RateBitsPerSec: 1e9, DelaySeconds: 0.0005, LossRatio: 0.01,
			QueueBytes: 100_000, Seed: 1}}})
	transfer(t, r, 4<<20)
	c, err := r.LinkCounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", c)
	if c.Out.DroppedLoss == 0 || c.Out.InPackets < 2800 || c.Out.DroppedInvalid != 0 {
		t.Errorf("%+v", c.Out)
	}
}

// A world's link has the parameters of the world, in each direction its own, and SetLink replaces
// them. Package link judges what the parameters do, on a clock of its own.
func TestNetnsLinkParametersAndChange(t *testing.T) {
	loses, perfect := link.Params{LossRatio: 1}, link.Params{}
	r := up(t, scenario.World{Topology: scenario.Pair, Link: &scenario.Link{ToFar: loses, ToNear: &perfect}})
	ctx := t.Context()
	reflecting(t, r)
	trip := r.Near().Command(ctx, "trip", "far")
	if err := trip.Start(); err != nil {
		t.Fatal(err)
	}
	counted(t, r, func(c link.Counts) bool { return c.Out.DroppedLoss > 0 })
	if c, err := r.LinkCounts(ctx); err != nil || c.Out.OutPackets != 0 || c.Back.DroppedLoss != 0 {
		t.Errorf("a link that loses all packets to far: %+v, %v", c, err)
	}
	_ = trip.Signal(syscall.SIGKILL)
	_ = trip.Wait()
	if err := r.SetLink(ctx, scenario.Link{ToFar: perfect}); err != nil {
		t.Fatal(err)
	}
	if got := output(t, r.Near().Command(ctx, "trip", "far")); got != "back" {
		t.Errorf("after the change: %s", got)
	}
}

// counted waits until the counters of the world's link meet a condition.
func counted(t *testing.T, r *Running, done func(link.Counts) bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		c, err := r.LinkCounts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if done(c) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the link's counters stay at %+v", c)
		}
	}
}

// reflecting starts a server at far that sends every datagram back until the test ends.
func reflecting(t *testing.T, r *Running) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	reflector := r.Far().Command(ctx, "reflect")
	reflector.Stdout = write
	if err := reflector.Start(); err != nil {
		t.Fatal(err)
	}
	var first string
	if _, err := fmt.Fscanln(read, &first); err != nil || first != "ready" {
		t.Fatalf("reflect: %q %v", first, err)
	}
	t.Cleanup(func() {
		stop()
		_ = reflector.Wait()
	})
}

// When the maker is killed, everything in its world ends.
func TestNetnsWorldDiesWithItsMaker(t *testing.T) {
	up(t, scenario.World{Topology: scenario.Pair}) // ends the test on a machine without namespaces
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"linerate", "hold"}}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/ns/net", pid)); err != nil {
		t.Fatalf("the near host is not process %d: %v", pid, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); errors.Is(err, fs.ErrNotExist) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d still runs", pid)
		}
	}
}

// A command has the maker's terminal to itself, and the maker gets it back afterwards.
func TestNetnsTerminal(t *testing.T) {
	up(t, scenario.World{Topology: scenario.Pair})
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		testenv.Missing(t, testenv.NetNS, err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"linerate", "terminal"}, Stdin: slave, Stdout: slave,
		Stderr: slave}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close()
	if _, err := master.WriteString("one\ntwo\n"); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	said, _ := io.ReadAll(master) // ends with EIO when the last slave is closed
	if err := cmd.Wait(); err != nil || !strings.Contains(string(said), "near read one") ||
		!strings.Contains(string(said), "maker read two") {
		t.Errorf("%v: %q", err, said)
	}
}

func TestRunHostByHand(t *testing.T) {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"linerate", "lab-host"}}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "started by the lab itself") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestExplain(t *testing.T) {
	for name, want := range map[string]string{
		"user/max_user_namespaces":                       "user.max_user_namespaces=15000",
		"kernel/unprivileged_userns_clone":               "kernel.unprivileged_userns_clone=1",
		"kernel/apparmor_restrict_unprivileged_userns=1": "kernel.apparmor_restrict_unprivileged_userns=0",
		"": "SYS_ADMIN",
	} {
		root := t.TempDir()
		file, value, ok := strings.Cut(name, "=")
		if !ok {
			value = "0"
		}
		if name != "" {
			path := filepath.Join(root, "proc/sys", file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(value+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		err := explain(fmt.Errorf("clone: %w", syscall.EPERM), root)
		if !errors.Is(err, ErrNoNamespaces) || !errors.Is(err, fs.ErrPermission) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	plain := errors.New("other")
	if err := explain(plain, "/"); err != plain {
		t.Errorf("other error became %v", err)
	}
}

func TestWorldCheck(t *testing.T) {
	for _, w := range []scenario.World{
		{}, {Topology: "star"},
		{Topology: scenario.Pair, Link: &scenario.Link{ToFar: link.Params{LossRatio: 2}}},
		{Topology: scenario.Pair, Settings: map[string][]scenario.Setting{"router": nil}},
	} {
		if w.Check() == nil {
			t.Errorf("%+v accepted", w)
		}
	}
	w := scenario.World{Topology: scenario.Router, Link: &scenario.Link{ToFar: link.Params{RateBitsPerSec: 1e9}},
		Settings: map[string][]scenario.Setting{"all": nil, "router": nil}}
	if err := w.Check(); err != nil {
		t.Error(err)
	}
	b, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	var again scenario.World
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(w, again); d != "" {
		t.Error(d)
	}
}
