package worldtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/lab/guest"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
	"github.com/linerate/linerate/internal/storage"
)

// diskGuest is a guest with 256 MB and two disks, in which the test binary is linerate.
type diskGuest struct {
	*guest.Guest
	t *testing.T
}

// bootGuest boots a guest that ends with the test.
func bootGuest(t *testing.T, o guest.Options) diskGuest {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	g, err := guest.Boot(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return diskGuest{g, t}
}

// newDiskGuest boots a guest with disks. /srv is an ext4 on vda.
func newDiskGuest(t *testing.T, more ...guest.Drive) diskGuest {
	t.Helper()
	testenv.Need(t, testenv.Guest, testenv.Long)
	d := bootGuest(t, guest.Options{
		// One processor: with two the kernel once hung in the first memory group, where it patches its
		// own text while the other runs.
		MemoryBytes: 256 << 20,
		Modules:     []string{"virtio_blk", "crc32c_generic", "ext4", "virtio_scsi", "xhci_pci", "usb_storage", "sd_mod"},
		Programs: []string{"sh", "cat", "ln", "mkdir", "mount", "sleep", "mke2fs", "find", "rmdir", "umount", "setpriv",
			"head", "rm", "sync", "tail", "grep", "cksum", "fsfreeze"},
		Drives: append([]guest.Drive{{SizeBytes: 512 << 20}, {SizeBytes: 64 << 20},
			{SizeBytes: 256 << 20, OperationsPerSec: 300}}, more...),
	})
	d.sh(`ln /init /usr/bin/linerate # a symbolic link would hide the name from the guard
		mkdir /srv /spare /slow
		mke2fs -q -t ext4 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard /dev/vda
		mke2fs -q -t ext4 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard /dev/vdb
		mount -t ext4 /dev/vda /srv
		mount -t ext4 /dev/vdb /spare`)
	return d
}

// run runs a script in the guest.
func (d diskGuest) run(script string) (status int, stdout, stderr string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 20*time.Minute)
	defer cancel()
	var out, errw bytes.Buffer
	status, err := d.Run(ctx, guest.Command{Args: []string{"sh", "-c", script},
		Env: []string{"LINERATE_STATE=/tmp/state"}}, &out, &errw)
	if err != nil {
		d.t.Fatalf("%v\n%s%s", err, &out, &errw)
	}
	return status, out.String(), errw.String()
}

// sh runs a script that must succeed.
func (d diskGuest) sh(script string) string {
	d.t.Helper()
	status, out, errw := d.run("set -e\n" + script)
	if status != 0 {
		d.t.Fatalf("exit status %d\n%s%s", status, out, errw)
	}
	return out
}

// disk runs `linerate disk --json` and returns its document.
func (d diskGuest) disk(args string) report.DiskDocument {
	d.t.Helper()
	status, out, errw := d.run("linerate disk --json " + args)
	var doc report.DiskDocument
	if err := json.Unmarshal([]byte(out), &doc); err != nil || (status != 0 && status != 3) {
		d.t.Fatalf("exit status %d, %v\n%s%s", status, err, out, errw)
	}
	if err := reporttest.Validate([]byte(out)); err != nil {
		d.t.Error(err)
	}
	return doc
}

// available is MemAvailable of the guest in bytes.
func (d diskGuest) available() int64 {
	d.t.Helper()
	_, rest, _ := strings.Cut(d.sh("cat /proc/meminfo"), "MemAvailable:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		d.t.Fatal(err)
	}
	return kib << 10
}

// with is the same guest in a subtest.
func (d diskGuest) with(t *testing.T) diskGuest { return diskGuest{d.Guest, t} }

// TestDiskInSmallGuest runs what needs a machine of its own: memory to pin, control groups of both
// versions, a disk to pull. Booting and the tests take some 40 s.
func TestDiskInSmallGuest(t *testing.T) {
	t.Parallel()
	d := newDiskGuest(t, guest.Drive{SizeBytes: 48 << 20, Bus: "scsi"}, guest.Drive{SizeBytes: 40 << 20, Bus: "usb"})
	t.Run("pinned", func(t *testing.T) { d.with(t).pinned() })
	t.Run("side effects", func(t *testing.T) { d.with(t).sideEffects() })
	t.Run("killed", func(t *testing.T) { d.with(t).killed() })
	t.Run("not permitted", func(t *testing.T) { d.with(t).notPermitted() })
	t.Run("control groups of version 1", func(t *testing.T) { d.with(t).groupsOne() })
	t.Run("frozen", func(t *testing.T) { d.with(t).frozen() })
	t.Run("unplugged", func(t *testing.T) { d.with(t).unplugged(1, "--size 16M", "/spare") })
	t.Run("unplugged SCSI", func(t *testing.T) { d.with(t).unplugged(3, "--depth 4", d.with(t).diskOf(48<<20)) })
	t.Run("unplugged USB", func(t *testing.T) { d.with(t).unplugged(4, "", d.with(t).diskOf(40<<20)) })
}

// TestDiskInSecondGuest needs another guest: a kernel takes minutes to move controllers from one
// version of control groups to the other. Some 90 s, most of them a whole tune.
func TestDiskInSecondGuest(t *testing.T) {
	t.Parallel()
	d := newDiskGuest(t)
	t.Run("tuned", func(t *testing.T) { d.with(t).tuned() })
	t.Run("control groups of version 2", func(t *testing.T) { d.with(t).groupsTwo() })
}

// figures logs results as notes for docs/evidence/disk.md, and returns them by way.
func (d diskGuest) figures(doc report.DiskDocument) map[storage.Way]storage.Result {
	d.t.Helper()
	by := make(map[storage.Way]storage.Result)
	for _, r := range doc.Tests {
		by[r.Way] = r
		ratio := -1.0
		if r.DeviceRatio != nil {
			ratio = *r.DeviceRatio
		}
		d.t.Logf("%s, %s: %s, %.1f MB/s, %.3f of the bytes at the device, %d MiB pinned, %d MiB of a group, %q", r.Test,
			r.Way, r.Whose, r.ThroughputBytesPerSec/1e6, ratio, r.PinnedBytes>>20, r.GroupBytes>>20, r.Warnings)
	}
	return by
}

// pinned replays the old procedure: a machine with little memory, most of it pinned, so that
// buffered reads of a file meet the disk and not the cache. One command shows both figures.
func (d diskGuest) pinned() {
	before := d.available()
	// The file is in the cache, so the first figure does not depend on the speed of the guest.
	// Random numbers would cost the guest's processor ten times as much as zeros, and a file system
	// writes both.
	d.sh("head -c 67108864 /dev/zero >/srv/file; sync; cat /srv/file >/dev/null")
	var by map[storage.Way]storage.Result
	for { // again where the program found too little to judge, as in a guest without processor time
		by = d.figures(d.disk("--duration 2s --test sequential-read --way buffered,pinned /srv/file"))
		if by[storage.Pinned].Whose != storage.Unknown || !mayRepeat(d.t) {
			break
		}
		d.t.Logf("not judged: %+v", by[storage.Pinned])
	}
	d.sh("rm /srv/file")
	if r := by[storage.Buffered]; r.Whose != storage.PageCache {
		d.t.Errorf("without pinning: whose %s, want %s", r.Whose, storage.PageCache)
	}
	if r := by[storage.Pinned]; r.Whose != storage.Device || r.LatencyWhose != storage.ReadAhead ||
		r.PinnedBytes < 32<<20 {
		d.t.Errorf("pinned: whose %s, latency %s, %d bytes pinned", r.Whose, r.LatencyWhose, r.PinnedBytes)
	}
	d.returned(before)
}

// returned checks that the memory of the guest is back, give or take what its kernel caches.
func (d diskGuest) returned(before int64) {
	d.t.Helper()
	const cached = 12 << 20
	if now := d.available(); now < before-cached {
		d.t.Errorf("%d MiB available, before the test %d", now>>20, before>>20)
	}
}

// killed kills a test in the middle: the memory comes back, and no file stays.
func (d diskGuest) killed() {
	before, files := d.available(), d.sh("find /srv")
	out := d.sh(`linerate disk --size 32M --duration 10m --test sequential-read --way pinned /srv >/dev/null 2>&1 &
		test=$!
		while read name kib unit; do [ $name = Unevictable: ] && break; done </proc/meminfo
		until [ $kib -gt 32768 ]; do
			kill -0 $test
			while read name kib unit; do [ $name = Unevictable: ] && break; done </proc/meminfo
		done
		kill -9 $test
		wait $test || echo status $?
		while read name after unit; do [ $name = Unevictable: ] && break; done </proc/meminfo
		echo unevictable $kib and then $after`)
	d.t.Log(out)
	if !strings.Contains(out, "status 137") || d.sh("find /srv") != files {
		d.t.Errorf("%s\nfiles now %s", out, d.sh("find /srv"))
	}
	d.returned(before)
}

// notPermitted: an ordinary user gets one sentence that says what is missing.
func (d diskGuest) notPermitted() {
	d.sh("mkdir -p /open && mount -t tmpfs -o mode=1777 open /open && mkdir -m 777 /srv/open")
	for args, want := range map[string]string{
		"/srv":                             "create a file in /srv: permission denied",
		"--way pinned --size 8M /srv/open": "pin memory: .*ulimit -l",
		"--way group --size 8M /srv/open":  "make a memory control group: ",
		"/dev/vda":                         "open /dev/vda: permission denied",
	} {
		status, out, errw := d.run("setpriv --reuid 65534 --regid 65534 --clear-groups linerate disk --test " +
			"sequential-read --duration 100ms " + args)
		if !regexp.MustCompile("^linerate: .*"+want).MatchString(errw) || strings.Count(errw, "linerate:") != 1 {
			d.t.Errorf("%s: exit status %d, %s%s", args, status, out, errw)
		}
	}
	if got := d.sh("find /srv/open"); got != "/srv/open\n" {
		d.t.Errorf("left behind: %s", got)
	}
}

// tuned plants a bad value on a disk of 300 operations a second, where each read-ahead is one
// operation. The tune mends it, undo brings it back, and on the mended disk there is nothing to do.
func (d diskGuest) tuned() {
	const ahead = "cat /sys/block/vdc/queue/read_ahead_kb"
	tune := func() (doc report.TuneDocument) {
		d.t.Helper()
		for {
			status, out, errw := d.run("linerate tune disk:/dev/vdc --json --duration 500ms --budget 20m")
			// linerate itself refuses to change anything without a guard, which a busy emulator starts
			// too late now and then.
			if status == 1 && strings.Contains(errw, "nothing changed: start guard") && mayRepeat(d.t) {
				d.t.Logf("no guard: %s", errw)
				continue
			}
			doc = report.TuneDocument{}
			// 5: a gain was not confirmed, and nothing is kept. The first tune must not end so.
			if err := json.Unmarshal([]byte(out), &doc); err != nil || status != 0 && status != 3 && status != 5 {
				d.t.Fatalf("exit status %d, %v\n%s%s", status, err, out, errw)
			}
			if err := reporttest.Validate([]byte(out)); err != nil {
				d.t.Error(err)
			}
			if status == 3 && doc.Unreliable && len(doc.Kept) == 0 && mayRepeat(d.t) {
				d.t.Logf("not judged: %s", doc.Reason)
				continue
			}
			return doc
		}
	}
	d.sh("echo 4 >/sys/block/vdc/queue/read_ahead_kb")
	doc := tune()
	if doc.Result() != report.Proved || len(doc.Kept) != 1 || doc.Kept[0].Knob != "block:vdc/read_ahead_kb" {
		d.t.Fatalf("%s: kept %v, trials %v, findings %v, %s", doc.Result(), doc.Kept, doc.Trials, doc.Findings, doc.Reason)
	}
	d.t.Logf("%s: %s → %s, %.3g to %.3g bytes/s, %v", doc.Kept[0].Knob, doc.Kept[0].From, doc.Kept[0].To,
		doc.Baseline.BytesPerSec, doc.After.BytesPerSec, doc.Final)
	// Nothing else helps this disk. An idle machine finds 512 KiB at once, ×31; where the guest gets
	// little CPU time, the first tune may stop at 128, and the second one proves the rest.
	again := tune()
	for _, k := range again.Kept {
		if k.Knob != doc.Kept[0].Knob || again.Result() != report.Proved {
			d.t.Errorf("%s: kept %v", again.Result(), again.Kept)
		}
		d.t.Logf("%s: %s → %s, %.3g to %.3g bytes/s", k.Knob, k.From, k.To, again.Baseline.BytesPerSec,
			again.After.BytesPerSec)
	}
	d.sh("linerate undo --all")
	if got := strings.TrimSpace(d.sh(ahead)); got != "4" {
		d.t.Errorf("after undo read-ahead is %s", got)
	}
}

// sideEffects changes what makes the kernel set other knobs as well: the queue of a disk with its
// scheduler, one way to bound dirty pages with the other. An undo brings all of them back.
func (d diskGuest) sideEffects() {
	d.sh(`cd /sys/block/vdb/queue
		echo mq-deadline >scheduler; echo 64 >nr_requests; echo 20000 >wbt_lat_usec; echo 333 >iosched/read_expire
		echo 15 >/proc/sys/vm/dirty_ratio; echo 70000000 >/proc/sys/vm/dirty_background_bytes`)
	picture := func() string {
		return d.sh(`cd /sys/block/vdb/queue
			head -n 1 scheduler nr_requests wbt_lat_usec read_ahead_kb rq_affinity iosched/* \
				/proc/sys/vm/dirty_*`)
	}
	before := picture()
	for _, setting := range []string{
		"block:vdb/scheduler=none", "vm.dirty_bytes=50000000", "vm.dirty_background_ratio=5",
	} {
		out := d.sh("linerate set --json --yes " + setting)
		var doc struct {
			Changes []struct {
				SideEffects []struct{ Knob, From, To string } `json:"side_effects"`
			} `json:"changes"`
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Changes) != 1 ||
			len(doc.Changes[0].SideEffects) == 0 {
			d.t.Errorf("%s: %v\n%s", setting, err, out)
		}
		d.t.Logf("%s: %+v", setting, doc)
	}
	out := d.sh("linerate undo --all")
	if diff := cmp.Diff(before, picture()); diff != "" {
		d.t.Errorf("%s\n%s", diff, out)
	}
}

// groupsOne checks a group as a way past the cache, and limits of a group as traps, with version 1.
func (d diskGuest) groupsOne() {
	d.sh(`mount -t tmpfs groups /sys/fs/cgroup
		mkdir /sys/fs/cgroup/memory /sys/fs/cgroup/blkio
		mount -t cgroup -o memory memory /sys/fs/cgroup/memory
		mount -t cgroup -o blkio blkio /sys/fs/cgroup/blkio`)
	d.grouped("/sys/fs/cgroup/memory")
	d.limited(`cd /sys/fs/cgroup/blkio && mkdir -p slow
		echo 254:0 65536 >slow/blkio.throttle.read_bps_device
		echo $$ >slow/cgroup.procs`)
	d.limited(`cd /sys/fs/cgroup/blkio && mkdir -p few
		echo 254:0 20 >few/blkio.throttle.read_iops_device
		echo $$ >few/cgroup.procs`)
}

// groupsTwo does the same with version 2.
func (d diskGuest) groupsTwo() {
	d.sh("mount -t cgroup2 groups /sys/fs/cgroup")
	status, out, errw := d.run("linerate disk --size 8M --test sequential-read --duration 100ms --way group /srv")
	const want = "the memory controller is not enabled in /sys/fs/cgroup/cgroup.subtree_control"
	if status != 1 || !strings.Contains(errw, want) {
		d.t.Errorf("without the controller: exit status %d\n%s%s", status, out, errw)
	}
	d.sh("echo +memory +io >/sys/fs/cgroup/cgroup.subtree_control")
	d.grouped("/sys/fs/cgroup")
	d.limited(`cd /sys/fs/cgroup && mkdir -p slow
		echo 254:0 rbps=65536 >slow/io.max
		echo $$ >slow/cgroup.procs`)
	d.limited(`cd /sys/fs/cgroup && mkdir -p few
		echo 254:0 riops=20 >few/io.max
		echo $$ >few/cgroup.procs`)
}

// grouped runs a test in a group of its own. The group is gone afterwards, and so is that of a test
// that was killed once the next has run.
func (d diskGuest) grouped(mount string) {
	d.t.Helper()
	d.sh("mkdir " + mount + "/linerate-disk-999999")
	r := d.figures(d.disk("--size 64M --duration 2s --test sequential-read --way group /srv"))[storage.Grouped]
	if r.Whose != storage.Device || r.GroupBytes < 16<<20 || r.GroupBytes > 20<<20 {
		d.t.Errorf("whose %s, want %s; %d bytes of a group", r.Whose, storage.Device, r.GroupBytes)
	}
	if left := d.sh("find " + mount + " -name 'linerate-disk-*'"); left != "" {
		d.t.Errorf("groups left behind: %s", left)
	}
}

// limited runs a test in a group with a limit, which lets a read of 4 KiB through every 50 or 62
// ms. Where one waited much longer, the test ended late, or the rate is far below the limit, the
// guest stood still or is slower than its limit, which then limits nothing: the test runs again.
func (d diskGuest) limited(enter string) {
	d.t.Helper()
	const stoodStill, lasts = 0.3, 2 // seconds
	const limit = 65536. / 4096      // operations/s, the lower one
	for range 30 {
		status, out, errw := d.run("set -e\n" + enter +
			"\nexec linerate disk --json --size 32M --duration 2s --test random-read /srv")
		var doc report.DiskDocument
		if err := json.Unmarshal([]byte(out), &doc); err != nil || status != 0 && status != 3 {
			d.t.Fatalf("exit status %d, %v\n%s%s", status, err, out, errw)
		}
		r := doc.Tests[0]
		d.t.Logf("%s: %.0f operations/s, %.2f MB/s: %q", r.Whose, r.OperationsPerSec, r.ThroughputBytesPerSec/1e6, r.Because)
		if r.Latency == nil || r.Latency.Max > stoodStill || r.DurationSeconds > lasts+stoodStill ||
			r.OperationsPerSec < 0.8*limit {
			d.t.Logf("no verdict: %v s, %+v", r.DurationSeconds, r.Latency)
			continue
		}
		if r.Whose != storage.ControlGroup || status != 3 {
			d.t.Errorf("exit status %d, whose %s, want %s", status, r.Whose, storage.ControlGroup)
		}
		return
	}
	d.t.Error("the guest stood still in each of thirty tests")
}

// diskOf waits for the SCSI disk of that size, and returns its device.
func (d diskGuest) diskOf(bytes int64) string {
	d.t.Helper()
	return strings.TrimSpace(d.sh(fmt.Sprintf(`i=0
		while [ $i -lt 100 ]; do
			for b in /sys/block/sd*; do
				[ -e $b/size ] && read sectors <$b/size && [ $sectors = %d ] && echo /dev/${b##*/} && exit 0
			done
			sleep 0.2
			i=$((i + 1))
		done
		exit 1`, bytes/512)))
}

// untouched is what a test that fails may not change: settings, mounts, and the files of /srv.
const untouched = `[ -e /srv/precious ] || head -c 1048576 /dev/urandom >/srv/precious
	sync
	cd /sys/block/vda/queue
	cat /proc/self/mounts read_ahead_kb scheduler nr_requests
	find /srv -printf "%p %y %m %U:%G %s %T@\n"
	cksum /srv/precious
	find /sys/fs/cgroup -name '*linerate*'`

// frozen freezes the file system in the middle of a test, and before one. The test says why it does
// not end, which nothing can change until the thaw.
func (d diskGuest) frozen() {
	before := d.sh(untouched)
	out := d.sh(`linerate disk --size 16M --test random-write --duration 10m --interval 200ms --progress lines /spare \
			>/tmp/out 2>/tmp/said & test=$!
		until grep -qs operations/s /tmp/said; do
			[ -d /proc/$test ]
			sleep 0.2
		done
		fsfreeze -f /spare
		i=0
		until grep -q "file system is frozen" /tmp/said || [ $i -gt 60 ]; do
			sleep 5 # each look costs two processes
			i=$((i + 1))
		done
		linerate disk --size 16M --test random-read /spare >/tmp/out2 2>/tmp/said2 & second=$!
		sleep 2
		kill -INT $second
		i=0
		until grep -q -e "file system is frozen" -e interrupted /tmp/said2 || [ $i -gt 60 ]; do
			sleep 5
			i=$((i + 1))
		done
		fsfreeze -u /spare
		status=0; wait $test || status=$?
		echo first $status
		tail -n 1 /tmp/said
		status=0; wait $second || status=$?
		echo second $status
		cat /tmp/said2
		grep -q random-write /tmp/out
		umount /spare # which files without a name would refuse
		mount -t ext4 /dev/vdb /spare
		find /spare`)
	d.t.Log(out)
	// The second one has 10 s after the interrupt, unless that came before it was listened for, or
	// before the file system was touched.
	const says = "the file system is frozen, or its device does not answer: nothing has ended for "
	want := regexp.MustCompile("^first 1\nlinerate: random-write on /spare: " + says + "40s\n" +
		"(second 130\nlinerate: interrupted|" +
		"second 1\nlinerate: disk: open /spare: " + says + "(10s after the end of the test|40s))\n" +
		"/spare\n/spare/lost\\+found\n$")
	if !want.MatchString(out) {
		d.t.Errorf("want\n%s", want)
	}
	// The mount is a new one, which stands at the end of the list.
	if diff := cmp.Diff(sortedLines(before), sortedLines(d.sh(untouched))); diff != "" {
		d.t.Errorf("(-before +after)\n%s", diff)
	}
}

func sortedLines(text string) []string { return slices.Sorted(strings.SplitSeq(text, "\n")) }

// unplugged pulls a disk in the middle of a test: one sentence, the result until then, nothing left
// behind.
func (d diskGuest) unplugged(drive int, flags, path string) {
	before := d.sh(untouched)
	var out, errw bytes.Buffer
	pull := &trigger{w: &errw, on: regexp.MustCompile(`[1-9]\S* (k )?operations/s`),
		do: func() error { return d.Unplug(d.t.Context(), drive) }}
	ctx, cancel := context.WithTimeout(d.t.Context(), 20*time.Minute)
	defer cancel()
	status, err := d.Run(ctx, guest.Command{Args: strings.Fields("linerate disk --json --test random-read " +
		"--duration 10m --interval 200ms --progress lines " + flags + " " + path)}, &out, pull)
	if err != nil || pull.err != nil {
		d.t.Fatalf("%v, %v\n%s%s", err, pull.err, &out, &errw)
	}
	var doc report.DiskDocument
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		d.t.Fatalf("exit status %d, %v\n%s%s", status, err, &out, &errw)
	}
	said := errw.String()[strings.LastIndex(strings.TrimSpace(errw.String()), "\n")+1:]
	d.t.Logf("exit status %d: %s", status, said)
	want := regexp.MustCompile(`random-read on ` + path + `: read at byte \d+: (input/output error|no such device)`)
	if status != 1 || !want.MatchString(said) {
		d.t.Errorf("exit status %d: %s", status, &errw)
	}
	if len(doc.Tests) != 1 || doc.Tests[0].Operations == 0 || doc.Tests[0].Errors == 0 ||
		!slices.ContainsFunc(doc.Findings, func(f evidence.Finding) bool { return f.Code == evidence.DiskIOErrors }) {
		d.t.Errorf("document %s", &out)
	}
	if after := d.sh(untouched); after != before {
		d.t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

// trigger does something once when a text is written.
type trigger struct {
	w    io.Writer
	on   *regexp.Regexp
	do   func() error
	once sync.Once
	err  error
}

func (t *trigger) Write(b []byte) (int, error) {
	if t.on.Match(b) {
		t.once.Do(func() { t.err = t.do() })
	}
	return t.w.Write(b)
}
