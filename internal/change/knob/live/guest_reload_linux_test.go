package live_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/journal/journaltest"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
)

// reloadPart plays a writer or a guard of TestGuestReload: `TEST reload writer STATE KNOB VALUE`,
// `TEST reload guard …`. A part with DIES_AFTER_PART=STEP kills itself after that step of a reload.
func reloadPart() {
	if len(os.Args) < 3 || os.Args[1] != "reload" {
		return
	}
	switch os.Args[2] {
	case "writer":
		o := reloadOptions(os.Args[3], "WRITER")
		o.Guard = &journal.GuardOptions{Args: []string{"reload"}, Handshake: journaltest.Patience}
		if os.Getenv("UNGUARDED") != "" {
			o.Guard, o.Unguarded = nil, true
		}
		j, err := journal.Open(o)
		if err == nil {
			_, err = j.Apply(context.Background(), journal.Request{Reason: "a test"},
				knob.Setting{Knob: knob.ID(os.Args[4]), Value: knob.Value(os.Args[5])})
		}
		if err == nil {
			err = j.Close() // a lease ends with its journal
		}
		journaltest.Finish(err)
	case "guard":
		journaltest.Finish(journaltest.Guard(os.Args[3:], func(state string) journal.Options {
			return reloadOptions(state, "GUARD")
		}))
	}
}

func reloadOptions(state, part string) journal.Options {
	host := live.New()
	host.OnReload(func(step string) {
		if os.Getenv("DIES_AFTER_"+part) == step {
			_ = os.WriteFile(filepath.Join(state, part+" died"), nil, 0o600)
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {} // the signal is on its way
		}
	})
	return journal.Options{Dir: state, Backend: host, Catalog: knob.Catalogue()}
}

// command runs a line in the guest, which has no shell.
func command(t *testing.T, line string) string {
	t.Helper()
	words := strings.Fields(line)
	out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// furnish gives the two e1000 cards everything that a host gives its interfaces. The names are not
// those of the kernel, and in another order.
func furnish(t *testing.T) {
	t.Helper()
	first, second := guesttest.Interface(t, "e1000"), guesttest.Interface(t, "e1000-82545em")
	for _, line := range []string{
		"ip link set " + first + " down", "ip link set " + second + " down",
		"ip link set " + first + " name lan1", "ip link set " + second + " name lan0",
		"ip link set lan0 address 02:00:5e:00:00:17 mtu 4000 txqueuelen 500 alias uplink group 7",
		"ip link property add dev lan0 altname enp0s17",
		"sysctl -w net.ipv6.conf.lan1.addr_gen_mode=1 net.ipv4.conf.lan0.rp_filter=2 net.ipv4.conf.lan1.arp_ignore=1 " +
			"net.ipv4.neigh.lan0.base_reachable_time_ms=12500",
		"ethtool -G lan0 rx 512 tx 128", "ethtool -C lan0 rx-usecs 50", "ethtool -K lan1 gro off tso off",
		"ethtool -A lan0 autoneg off rx off tx on", "ethtool -s lan1 msglvl 0x35",
		"ip link set lan0 up promisc on", "ip link set lan1 up allmulticast on",
		"ip addr add 192.0.2.1/24 dev lan0 label lan0:web", "ip addr add 192.0.2.2/24 dev lan0",
		"ip addr add 198.51.100.1/25 dev lan1 valid_lft 9000 preferred_lft 8000",
		"ip addr add 203.0.113.1 peer 203.0.113.9/32 dev lan1",
		"ip addr add 2001:db8:1::1/64 dev lan0 nodad", "ip addr add 2001:db8:2::1/64 dev lan1 nodad noprefixroute",
		"ip route add 10.0.0.0/8 via 192.0.2.254 dev lan0 src 192.0.2.2 metric 50 initcwnd 20",
		"ip route add default via 198.51.100.126 dev lan1 table 100",
		"ip route add 10.9.0.0/16 metric 7 nexthop via 192.0.2.253 dev lan0 weight 3 nexthop via 198.51.100.100 dev lan1",
		"ip -6 route add 2001:db8:ffff::/48 via 2001:db8:1::fe dev lan0", "ip -6 route add 2001:db8:2::/64 dev lan1 metric 9",
		"ip route add 172.16.0.0/12 dev lo src 192.0.2.1", "ip rule add iif lan0 lookup 100 pref 77",
		"ip neigh add 192.0.2.254 lladdr 02:00:5e:00:00:fe dev lan0 nud permanent",
		"ip neigh add proxy 192.0.2.77 dev lan0",
		"tc qdisc replace dev lan0 root handle 1: htb default 20 r2q 20",
		"tc class add dev lan0 parent 1: classid 1:1 htb rate 900mbit",
		"tc class add dev lan0 parent 1:1 classid 1:20 htb rate 500mbit ceil 900mbit",
		"tc qdisc add dev lan0 parent 1:20 handle 20: fq_codel limit 777",
		"tc qdisc replace dev lan1 root handle 5: tbf rate 700mbit burst 40kb latency 30ms",
		"tc qdisc add dev lan1 ingress",
	} {
		command(t, line)
	}
}

// varying are parts of a picture that no reload keeps, or that go on by themselves.
var varying = regexp.MustCompile(`(?m)(^\d+: |valid_lft \d+sec|preferred_lft \d+sec|\bexpires \d+sec|` +
	` tentative| dadfailed|state (UP|DOWN|UNKNOWN)|,LOWER_UP|NO-CARRIER,|,PROMISC|promiscuity \d+|` +
	`refcnt \d+|qlen \d+|direct_packets_stat \d+|\bstate [A-Z]+|STALE|REACHABLE|MDI-X: (on|off|Unknown) \(auto\))`)

// batches are the lines that hostPicture asks ip(8) and tc(8) for, by the arguments of one process:
// in a guest, a process costs more than what it prints. Each line of output belongs to one card: ip
// names it, and tc has a process for each.
var batches = []struct{ process, lines string }{
	{"ip -o -batch", "rule show\nroute show table all\nneigh show nud permanent\nneigh show proxy\n" +
		"addr show lan0\naddr show lan1\n"},
	{"ip -o -6 -batch", "route show table all\n"},
	{"ip -o -d -batch", "link show lan0\nlink show lan1\n"},
	{"tc -batch", "qdisc show dev lan0\nclass show dev lan0\n"},
	{"tc -batch", "qdisc show dev lan1\nclass show dev lan1\n"},
}

// hostPicture is what the programs of the system show of both cards.
func hostPicture(t *testing.T) []string {
	t.Helper()
	settled(t)
	var all []string
	add := func(line, out string) {
		for one := range strings.Lines(out) {
			if strings.HasPrefix(one, "class fq_codel") {
				continue // a flow of the moment
			}
			all = append(all, line+": "+strings.TrimSpace(varying.ReplaceAllString(one, "")))
		}
	}
	file := filepath.Join(t.TempDir(), "lines")
	for _, b := range batches {
		if err := os.WriteFile(file, []byte(b.lines), 0o600); err != nil {
			t.Fatal(err)
		}
		add(b.process+" "+strings.ReplaceAll(b.lines, "\n", "; "), command(t, b.process+" "+file))
	}
	for _, name := range []string{"lan0", "lan1"} {
		for _, line := range []string{"ethtool -k " + name, "ethtool -g " + name, "ethtool -a " + name, "ethtool " + name} {
			add(line, command(t, line))
		}
		for _, dir := range []string{"ipv4/conf", "ipv4/neigh", "ipv6/conf", "ipv6/neigh"} {
			files, err := filepath.Glob("/proc/sys/net/" + dir + "/" + name + "/*")
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if b, err := os.ReadFile(file); err == nil {
					all = append(all, file+": "+strings.TrimSpace(string(b)))
				}
			}
		}
	}
	all = append(all, "rx-usecs: "+usecs(t, "lan0"))
	slices.Sort(all)
	return all
}

// settled waits until the kernel has reported both links as up, with which their link-local
// addresses come, until duplicate address detection is over, and until each address has its local
// route, which it gets a moment later. All that takes a guest some seconds.
func settled(t *testing.T) {
	t.Helper()
	// Flags of an address in linux/if_addr.h, and of a route in linux/ipv6_route.h.
	const tentative, local = 0x40, 0x80000000
	lines := func(file string) (all [][]string) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			all = append(all, strings.Fields(line))
		}
		return all
	}
	has := func(word string, flag uint64) bool {
		flags, err := strconv.ParseUint(word, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		return flags&flag != 0
	}
	// Files, because a process for each look costs a guest more than a reload does.
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		ready := true
		missing := make(map[string]int) // routes of addresses
		for _, name := range []string{"lan0", "lan1"} {
			b, err := os.ReadFile("/sys/class/net/" + name + "/operstate")
			ready = ready && err == nil && strings.TrimSpace(string(b)) == "up"
		}
		for _, f := range lines("/proc/net/if_inet6") { // address, index, length, scope, flags, name
			ready = ready && !has(f[4], tentative)
			missing[f[5]]++
		}
		for _, f := range lines("/proc/net/ipv6_route") { // the last are flags and name
			if has(f[len(f)-2], local) {
				missing[f[len(f)-1]]--
			}
		}
		if ready && missing["lan0"] == 0 && missing["lan1"] == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("not settled:\n%s", command(t, "ip addr show"))
}

func usecs(t *testing.T, name string) string {
	t.Helper()
	v, err := live.New().Read(t.Context(), knob.ID("ethtool:"+name+"/coalesce.rx-usecs"))
	if err != nil {
		t.Fatal(err)
	}
	return string(v)
}

// compare lists what two pictures do not share.
func compare(before, after []string) (lines []string) {
	for _, one := range before {
		if !slices.Contains(after, one) {
			lines = append(lines, "- "+one)
		}
	}
	for _, one := range after {
		if !slices.Contains(before, one) {
			lines = append(lines, "+ "+one)
		}
	}
	return lines
}

func sameHost(t *testing.T, what string, before []string) {
	t.Helper()
	if d := difference(t, before, func(string) bool { return false }); len(d) > 0 {
		t.Fatalf("%s: unaccounted for:\n%s", what, strings.Join(d, "\n"))
	}
}

// difference lists what the host does not share with a picture, but for lines that may differ. The
// kernel reports a link some time after it has come, which takes longer in a guest that waits for
// its host; a lost entry does not come back.
func difference(t *testing.T, before []string, may func(line string) bool) (d []string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(500 * time.Millisecond) {
		d = slices.DeleteFunc(compare(before, hostPicture(t)), may)
		if len(d) == 0 || time.Now().After(end) {
			return d
		}
	}
}

// dependencies writes what depmod(8) writes when a kernel is installed, for the modules of the
// guest.
func dependencies(t *testing.T) {
	t.Helper()
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		t.Fatal(err)
	}
	dir := "/lib/modules/" + unix.ByteSliceToString(name.Release[:])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	list := "/modules/e1000.ko:\n/modules/e1000e.ko:"
	for _, name := range []string{"ptp", "pps_core"} {
		if _, err := os.Stat("/modules/" + name + ".ko"); err == nil { // else built in
			list += " /modules/" + name + ".ko"
		}
	}
	list += "\n"
	if err := os.WriteFile(filepath.Join(dir, "modules.dep"), []byte(list), 0o644); err != nil {
		t.Fatal(err)
	}
}

const throttleKnob = "module:e1000/InterruptThrottleRate"

// TestGuestReload changes parameters of the real e1000 and e1000e by loading the modules anew, and
// has their interfaces come back with all that they had: after an undo, and when the writer, the
// guard or both are killed in between.
func TestGuestReload(t *testing.T) {
	if !guesttest.In(t) {
		return
	}
	before := reloadedHost(t)
	set := func(t *testing.T, j *journal.Journal, id knob.ID, v knob.Value) {
		t.Helper()
		if _, err := j.Apply(t.Context(), journal.Request{}, knob.Setting{Knob: id, Value: v}); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("there and back", func(t *testing.T) {
		j := openJournal(t, t.TempDir())
		began := time.Now()
		set(t, j, throttleKnob, "3000,8000")
		t.Logf("note: a reload of e1000 with two adapters took %v", time.Since(began).Round(time.Millisecond))
		if got := usecs(t, "lan0"); got != "125" {
			t.Errorf("rx-usecs %s after InterruptThrottleRate=3000,8000", got)
		}
		for _, line := range difference(t, before, func(line string) bool { return strings.Contains(line, "rx-usecs") }) {
			t.Errorf("also changed: %s", line)
		}
		set(t, j, "module:e1000/TxDescriptors", "80,256")
		if out := command(t, "ethtool -g lan1"); !strings.Contains(out, "TX:\t\t80") {
			t.Errorf("TxDescriptors=80,256:\n%s", out)
		}
		if got := usecs(t, "lan0"); got != "125" {
			t.Errorf("rx-usecs %s after another parameter", got)
		}
		if _, err := j.UndoAll(t.Context()); err != nil {
			t.Error(err)
		}
		sameHost(t, "undo", before)
		v, err := live.New().Read(t.Context(), throttleKnob)
		if err != nil || v != knob.Absent {
			t.Errorf("%s, %v", v, err)
		}
	})
	t.Run("e1000e", func(t *testing.T) {
		j, name := openJournal(t, t.TempDir()), guesttest.Interface(t, "e1000e")
		command(t, "ethtool -s "+name+" msglvl 0x7035")
		alert := func() []string {
			return slices.DeleteFunc(strings.Split(command(t, "ethtool "+name), "\n"), func(line string) bool {
				return !strings.Contains(line, "Wake-on") && !strings.Contains(line, "message level")
			})
		}
		awake := alert()
		t.Logf("note: %q", awake)
		if !strings.Contains(strings.Join(awake, "\n"), "message level: 0x00007035") {
			t.Fatalf("%q", awake)
		}
		set(t, j, "module:e1000e/InterruptThrottleRate", "2000")
		if got := usecs(t, name); got != "500" {
			t.Errorf("rx-usecs %s", got)
		}
		if again := alert(); !slices.Equal(again, awake) {
			t.Errorf("after the change %q, were %q", again, awake)
		}
		if _, err := j.UndoAll(t.Context()); err != nil {
			t.Error(err)
		}
		if got := usecs(t, name); got != "3" {
			t.Errorf("rx-usecs %s after undo", got)
		}
		if again := alert(); !slices.Equal(again, awake) {
			t.Errorf("%q, were %q", again, awake)
		}
	})
	t.Run("refused", func(t *testing.T) {
		j := openJournal(t, t.TempDir())
		index := command(t, "ip link show lan1")
		command(t, "ip link add br7 type bridge")
		for _, tc := range []struct{ make, end, want string }{
			{"ip link add link lan1 name vlan7 type vlan id 7", "ip link del vlan7", "vlan7 stands on it"},
			{"ip link set lan1 master br7", "ip link set lan1 nomaster", "br7 stands on it"},
			{"ip nexthop add id 7 dev lan1", "ip nexthop del id 7", "uses a nexthop object"},
		} {
			command(t, tc.make)
			if strings.Contains(tc.make, "nexthop") {
				command(t, "ip route add 10.77.0.0/16 nhid 7")
			}
			_, err := j.Apply(t.Context(), journal.Request{}, knob.Setting{Knob: throttleKnob, Value: "3000"})
			if !errors.Is(err, knob.ErrNotSupported) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v", tc.make, err)
			}
			command(t, tc.end)
		}
		command(t, "ip link del br7")
		set(t, j, "link:lan1/txqueuelen", "77")
		_, err := j.Apply(t.Context(), journal.Request{}, knob.Setting{Knob: throttleKnob, Value: "3000"})
		if !errors.Is(err, journal.ErrDisplaces) {
			t.Errorf("with a change in force on lan1: %v", err)
		}
		if _, err := j.UndoAll(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := j.Apply(t.Context(), journal.Request{}, knob.Setting{Knob: "module:igb/InterruptThrottleRate",
			Value: "1"}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a module that is not loaded: %v", err)
		}
		sameHost(t, "refusals", before)
		if index != command(t, "ip link show lan1") {
			t.Error("a refused change has made lan1 anew")
		}
	})
	// TestGuestReloadKills, behind the tag soak, has the others.
	for part, step := range map[string]string{"WRITER": "loaded", "GUARD": "dressed", "UNGUARDED": "unloaded"} {
		t.Run("killed "+part+" after "+step, func(t *testing.T) { killReload(t, part, step, before) })
	}
}

// reloadedHost has the cards of this guest furnished, and returns their picture.
func reloadedHost(t *testing.T) []string {
	t.Helper()
	if _, err := os.Stat("/sys/class/net/lan0"); err != nil { // else another test did
		dependencies(t)
		furnish(t)
	}
	return hostPicture(t)
}

// openJournal opens the journal of a state directory, without a guard of its own.
func openJournal(t *testing.T, state string) *journal.Journal {
	t.Helper()
	o := reloadOptions(state, "")
	o.Unguarded = true
	j, err := journaltest.OpenSoon(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// killReload kills a part after one step of a reload: the writer, whose guard takes the change
// back; the guard while it does that, or a writer without a guard, where recovery finishes it.
func killReload(t *testing.T, part, step string, before []string) {
	t.Helper()
	state := t.TempDir()
	env := []string{"DIES_AFTER_" + part + "=" + step}
	if part == "UNGUARDED" {
		env = []string{"DIES_AFTER_WRITER=" + step, "UNGUARDED=1"}
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "reload", "writer", state, throttleKnob, "3000,8000")
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if part != "GUARD" && err == nil {
		t.Fatalf("the writer did not die: %s", out)
	}
	if part == "GUARD" && err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if part != "UNGUARDED" {
		journaltest.GuardEnds(t, state)
	}
	died := "WRITER"
	if part == "GUARD" {
		died = part
	}
	if !journaltest.Died(died, state) {
		log, _ := os.ReadFile(filepath.Join(state, "guard.log"))
		t.Fatalf("%s has no step %q\n%s", died, step, log)
	}
	j := openJournal(t, state)
	outcomes, err := j.Recover(t.Context())
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(state, "guard.log"))
		t.Fatalf("%v\n%s", err, log)
	}
	if part == "WRITER" && len(outcomes) > 0 {
		log, _ := os.ReadFile(filepath.Join(state, "guard.log"))
		t.Errorf("the guard left this to recovery: %+v\n%s", outcomes, log)
	}
	for _, c := range j.Changes() {
		if c.State != journal.Undone {
			t.Errorf("%+v", c)
		}
	}
	sameHost(t, fmt.Sprintf("killed %s after %s", part, strconv.Quote(step)), before)
}
