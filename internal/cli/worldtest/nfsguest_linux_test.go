package worldtest_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/lab/guest"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
	"github.com/linerate/linerate/internal/storage/nfs"
)

// nfsSetup makes the guest's kernel the server of an export in a namespace with a card of its own,
// and its client on the other card. The caches of nfsd are filled as exportfs and mountd would.
const nfsSetup = `
ln /init /usr/bin/linerate
mkdir -p /run/netns /export /srv/nfsd /mnt/data
ip netns add server
for n in /sys/class/net/*; do
	read address <$n/address
	case $address in
	%[1]s) ip link set ${n##*/} netns server; server=${n##*/} ;;
	%[2]s) ip link set ${n##*/} name near up ;;
	esac
done
cat >/at-server <<'X'
exec nsenter --net=/run/netns/server "$@"
X
sh /at-server ip link set $server name card up
sh /at-server ip addr add 10.9.0.1/24 dev card
sh /at-server ip link set lo up
ip link set lo up
ip addr add 10.9.0.2/24 dev near
mount -t tmpfs -o size=24m none /export
sh /at-server mount -t nfsd nfsd /srv/nfsd
cat >/serve <<'X'
set -e
cd /srv/nfsd
echo 10 >nfsv4gracetime
echo 10 >nfsv4leasetime
echo 1048576 >max_block_size # the kernel's own choice follows the memory
echo "-3 +4 +4.1 +4.2" >versions
echo "tcp 2049" >portlist
echo 4 >threads
cd /proc/self/net/rpc
echo "nfsd 10.9.0.2 2147483647 client" >auth.unix.ip/channel
echo "client /export 2147483647 9234 65534 65534 0" >nfsd.export/channel
echo 'client 1 \x00000000 2147483647 /export' >nfsd.fh/channel
sleep 11 # until then clients may only reclaim what they had open
X
sh /at-server sh /serve
cat >/tune <<'X'
case " $* " in
*" --operation write "*) factors="--factors wsize" ;;
*) factors="--operation read --factors rsize" ;;
esac
exec linerate nfs tune 10.9.0.1:/ --progress lines $factors --sizes 4k,64k --size 1M \
	--duration 200ms --warm-up 0s --patience 10s "$@"
X
cat >/started <<'X'
# Waits until the sweep with the process id $1 is among its first segments.
until grep -qs "measure the noise" /tmp/said; do
	[ -d /proc/$1 ]
	sleep 0.1
done
sleep 1
X
cat >/servers <<'X'
# Prints the servers that the kernel's client still knows. No program awaits the end of a namespace.
i=0
while left=$(tail -n +2 /proc/fs/nfsfs/servers); [ "$left" ] && [ $i -lt 60 ]; do
	sleep 1
	i=$((i + 1))
done
echo "$left"
X
`

// TestNFSInGuest types the commands of NFS at a real server, in a guest whose clock counts
// instructions: delays and the patience with a silent server cost no time.
func TestNFSInGuest(t *testing.T) {
	testenv.Need(t, testenv.Guest, testenv.Long)
	t.Parallel()
	d := bootGuest(t, guest.Options{Counted: true, MemoryBytes: 512 << 20,
		Cards: []guest.Card{{Model: "e1000", Wire: 1}, {Model: "e1000-82545em", Wire: 1}},
		// crc32c_generic is a soft dependency (modprobe.d(5)), which module files do not name.
		Modules: []string{"crc32c_generic", "af_packet", "e1000", "nfs", "nfsv4", "nfsd", "sch_netem"},
		Programs: []string{"sh", "cat", "ip", "tc", "ln", "mkdir", "mount", "umount", "sleep", "find", "head", "grep",
			"tail", "rm", "setpriv", "nsenter", "cksum", "sync"}})
	d.sh(fmt.Sprintf(nfsSetup, guest.CardAddress(0), guest.CardAddress(1)))
	t.Run("waits", func(t *testing.T) { d.with(t).nfsWaits() })
	t.Run("not permitted", func(t *testing.T) { d.with(t).nfsNotPermitted() })
	t.Run("not there", func(t *testing.T) { d.with(t).nfsNotThere() })
	d.sh("head -c 2097152 /dev/urandom >/export/whole; sync")
	for _, c := range []struct{ name, flags, fault, repair, says string }{
		{"interrupted", "", "kill -INT $sweep", "", "status 130\n.*linerate: interrupted"},
		{"full", "--operation write", "head -c 25165824 /dev/zero >/export/filler || :", "rm /export/filler",
			"status 1\n.*: no space left on device"},
		{"shorter", "--file whole", "cat /export/whole >/tmp/whole; : >/export/whole", "cat /tmp/whole >/export/whole",
			"status 1\n.*read whole: unexpected EOF: the file became shorter during the run"},
		{"removed", "--file whole", "rm /export/whole", "cat /tmp/whole >/export/whole",
			"status 1\n.*read whole: the file was removed during the run"},
		{"read-only", "--operation write",
			"i=0; until mount -o remount,ro /export || [ $i -gt 600 ]; do sleep 0.1; i=$((i + 1)); done",
			"mount -o remount,rw /export", leavesFile + ".*status 1\n.*: read-only file system"},
		{"killed", "", "kill -9 $sweep", "", "status 137\n"},
		{"hung", "", "sh /at-server ip link set card down", "sh /at-server ip link set card up; sleep 1",
			"status 12\n.*does not answer for 10s"},
		{"gone", "", "echo 0 >/srv/nfsd/threads", "sh /at-server sh /serve",
			"status 12\n.*the server went away"},
		{"stale", "", `sh /at-server sh -c "echo 'client 1 \x00000000 2147483647' >/proc/self/net/rpc/nfsd.fh/channel"`,
			`sh /at-server sh -c "echo 'client 1 \x00000000 2147483647 /export' >/proc/self/net/rpc/nfsd.fh/channel"`,
			"status 12\n.*the server went away"},
	} {
		t.Run(c.name, func(t *testing.T) { d.with(t).nfsFault(c.flags, c.fault, c.repair, c.says) })
	}
	t.Run("tidied", func(t *testing.T) { d.with(t).nfsTidied() })
}

// nfsWaits: the counters of a real mount name a planted delay, and fewer slots than calls.
func (d diskGuest) nfsWaits() {
	d.sh("head -c 2097152 /dev/urandom >/export/big\n" +
		"sh /at-server tc qdisc add dev card root netem delay 100ms limit 100000")
	for _, c := range []struct {
		slots   int
		options string
		reads   uint64
		waits   nfs.Station
	}{{64, "rsize=1048576", 2, nfs.Network}, {1, "rsize=16384", 128, nfs.Slots}} {
		out := d.sh(fmt.Sprintf(`echo %d >/sys/module/nfs/parameters/max_session_slots
			mount -i -t nfs4 -o vers=4.2,addr=10.9.0.1,clientaddr=10.9.0.2,%s 10.9.0.1:/ /mnt/data
			cat /mnt/data/big >/dev/null
			linerate nfs --json /mnt/data
			umount /mnt/data`, c.slots, c.options))
		if err := reporttest.Validate([]byte(out)); err != nil {
			d.t.Error(err)
		}
		var doc report.NFSDocument
		if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Mounts) != 1 {
			d.t.Fatalf("%v\n%s", err, out)
		}
		m := doc.Mounts[0]
		d.t.Logf("%d slots, %s: waits %s, because %q", c.slots, c.options, m.Waits, m.Because)
		reads := uint64(0)
		for _, o := range m.Operations {
			if o.Operation == "READ" {
				reads = o.Requests
			}
		}
		if m.Waits != c.waits || reads != c.reads || m.ServerRead != 2<<20 ||
			fmt.Sprintf("rsize=%d", m.ReadSize) != c.options {
			d.t.Errorf("%d slots, %s: %+v", c.slots, c.options, m)
		}
	}
	d.sh("echo 64 >/sys/module/nfs/parameters/max_session_slots\n" +
		"sh /at-server tc qdisc replace dev card root netem delay 30ms limit 100000") // sweeps last long enough to break them
}

// nfsNotPermitted: an ordinary user gets one sentence.
func (d diskGuest) nfsNotPermitted() {
	status, out, errw := d.run("exec setpriv --reuid 65534 --regid 65534 --clear-groups linerate nfs tune 10.9.0.1:/")
	if status != 10 || out != "" || !strings.Contains(errw, "make a private mount namespace: operation not permitted") {
		d.t.Errorf("exit status %d\n%s%s", status, out, errw)
	}
}

// nfsNotThere: an export that the server does not have, and a path that is no NFS mount, get one
// sentence each.
func (d diskGuest) nfsNotThere() {
	before := d.sh("cat /proc/mounts")
	for args, says := range map[string]string{
		"tune 10.9.0.1:/nowhere": "nfs tune: mount 10.9.0.1:/nowhere (vers=4.2): no such file or directory",
		"/proc":                  "nfs /proc: not an NFS mount",
		"/export/big":            "nfs /export/big: not an NFS mount",
		"/nowhere":               "nfs /nowhere: file does not exist",
	} {
		status, out, errw := d.run("exec linerate nfs " + args)
		if status != 1 || out != "" || errw != "linerate: "+says+"\n" {
			d.t.Errorf("nfs %s: exit status %d\n%s%s", args, status, out, errw)
		}
	}
	if left := d.sh("sh /servers"); strings.TrimSpace(left) != "" || d.sh("cat /proc/mounts") != before {
		d.t.Errorf("still mounted: %s", left)
	}
}

// leavesFile is what a sweep says when it cannot remove its own file.
const leavesFile = `a\s+file\s+is\s+left\s+in\s+the\s+export:\s+remove\s+\.linerate-nfs-guest-`

// nfsFault breaks a sweep in the middle: it ends with one sentence, nothing stays mounted, and
// other files of the export are as before.
func (d diskGuest) nfsFault(flags, fault, repair, says string) {
	const others = `cat /proc/mounts
		cd /export
		find . ! -name '.linerate*' ! -name . -printf '%p %m %U:%G %s\n'
		cksum big whole`
	before := d.sh(others)
	out := d.sh(fmt.Sprintf(`rm -f /tmp/said /tmp/out
		sh /tune %s >/tmp/out 2>/tmp/said & sweep=$!
		sh -e /started $sweep || { cat /tmp/out /tmp/said >&2; exit 1; }
		%s
		status=0; wait $sweep || status=$?
		cat /tmp/out
		echo status $status
		tail -n 2 /tmp/said
		%s`, flags, fault, repair))
	// A client that cannot say goodbye to its server is remembered until the server answers.
	if left := strings.TrimSpace(d.sh("sh /servers")); left != "" {
		d.t.Errorf("still mounted: %s", left)
	}
	if !regexp.MustCompile("(?s)" + says).MatchString(out) {
		d.t.Errorf("%s\nwant %q", out, says)
	}
	// A server that does not answer, and kill -9, leave the file to the next run.
	left := d.sh("find /export -name '.linerate*'")
	if left != "" && !strings.HasPrefix(says, leavesFile) && !strings.Contains(out, "status 12\n") &&
		!strings.Contains(out, "status 137\n") {
		d.t.Errorf("left behind: %s", left)
	}
	d.t.Log(out)
	if now := d.sh(others); now != before {
		d.t.Errorf("before\n%s\nafter\n%s", before, now)
	}
}

// nfsTidied: the next run removes the files that broken ones left, and leaves none itself.
func (d diskGuest) nfsTidied() {
	status, out, errw := d.run("sh /tune --json")
	var doc report.NFSDocument
	if err := json.Unmarshal([]byte(out), &doc); err != nil || status != 0 && status != 3 {
		d.t.Fatalf("exit status %d, %v\n%s%s", status, err, out, errw)
	}
	if !strings.Contains(strings.Join(doc.Warnings, "\n"), "removed what an earlier run of this host left") {
		d.t.Errorf("warnings %q", doc.Warnings)
	}
	if got := strings.Fields(d.sh("cd /export; find . -type f")); len(got) != 2 || !slices.Contains(got, "./big") ||
		!slices.Contains(got, "./whole") {
		d.t.Errorf("left in the export: %q", got)
	}
}
