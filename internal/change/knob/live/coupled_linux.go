package live

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/ethtool"
)

// ratios are sysctls of which one is in force: the kernel sets the other to 0 (dirty_bytes_handler
// and its neighbours in mm/page-writeback.c). It refuses 0 for the bytes, so an undo of them has to
// set the ratio.
var ratios = map[knob.ID]knob.ID{
	"sysctl:vm.dirty_bytes":            "sysctl:vm.dirty_ratio",
	"sysctl:vm.dirty_ratio":            "sysctl:vm.dirty_bytes",
	"sysctl:vm.dirty_background_bytes": "sysctl:vm.dirty_background_ratio",
	"sysctl:vm.dirty_background_ratio": "sysctl:vm.dirty_background_bytes",
}

// Coupled implements knob.Coupler.
func (l *Host) Coupled(ctx context.Context, id knob.ID) []knob.Setting {
	var all []knob.Setting
	_ = do(func(client *nl.Client) error { // what cannot be read cannot be compared
		r := reader{host: l, client: client, dir: -1}
		defer r.close()
		for _, other := range l.couplings(id) {
			if v, err := r.read(other); err == nil && ctx.Err() == nil {
				all = append(all, knob.Setting{Knob: other, Value: l.canonical(other, v)})
			}
		}
		return nil
	})
	return all
}

// reader reads many settings of one interface, with one client, one answer for all features and one
// open directory: a NIC of 64 queues has some 400 files.
type reader struct {
	host     *Host
	client   *nl.Client
	features map[string]ethtool.Feature // nil: not read yet
	dir      int                        // of the interface in sysfs; below 0: not opened yet
}

func (r *reader) read(id knob.ID) (knob.Value, error) {
	name, attribute := id.Subject(), id.Attribute()
	feature, isFeature := strings.CutPrefix(attribute, "feature.")
	var err error
	switch {
	case id.Kind() == knob.KindEthtool && isFeature:
		if r.features == nil {
			if r.features, err = ethtool.New(r.client).Features(name); err != nil {
				return "", err
			}
		}
		return featureIn(r.features, feature)
	case id.Kind() == knob.KindEthtool:
		return readEthtool(r.client, name, attribute)
	case id.Kind() == knob.KindQueue:
		queue, _ := r.host.kinds[knob.KindQueue].(queueKnobs)
		name, file, err := queue.file(name, attribute)
		if err == nil && r.dir < 0 {
			r.dir, err = queue.sysfs.openInterface(name, false)
		}
		if err != nil {
			return "", err
		}
		return readPseudo(r.dir, file)
	}
	return r.host.read(id)
}

func (r *reader) close() {
	if r.dir >= 0 {
		_ = unix.Close(r.dir) // a path only: nothing to lose
	}
}

// couplings lists the knobs that a write of id may set as well. What a driver sets anew when it
// starts its NIC again differs by driver and version, so for such a knob all settings of the
// interface count.
func (l *Host) couplings(id knob.ID) []knob.ID {
	subject, attribute := id.Subject(), id.Attribute()
	switch id.Kind() {
	case knob.KindSysctl:
		if other, ok := ratios[id]; ok {
			return []knob.ID{other}
		}
	case knob.KindBlock:
		if attribute == "scheduler" {
			return queueOfDisk(blockRoot, subject)
		}
	case knob.KindCPU:
		// A governor brings a preference of its own (intel_pstate, amd-pstate).
		if attribute == "scaling_governor" {
			return []knob.ID{knob.ID("cpu:" + subject + "/energy_performance_preference")}
		}
	case knob.KindLink:
		if attribute == "mtu" {
			return l.ofInterface(subject, id, "")
		}
	case knob.KindEthtool:
		d, known := l.catalog.Lookup(id)
		if !known || d.Disturbance >= knob.DisturbsBriefLoss {
			return l.ofInterface(subject, id, "")
		}
		group, _, _ := strings.Cut(attribute, ".")
		return l.ofInterface(subject, id, group)
	}
	return nil
}

// queueOfDisk lists what another scheduler sets anew: the length of the queue (blk_mq_init_sched),
// the throttling of writes (bfq switches it off), and the parameters of the scheduler itself.
func queueOfDisk(root, disk string) []knob.ID {
	of := func(attribute string) knob.ID { return knob.ID("block:" + disk + "/" + attribute) }
	all := []knob.ID{of("nr_requests"), of("wbt_lat_usec")}
	own, _ := os.ReadDir(filepath.Join(root, filepath.Base(disk), "queue/iosched")) // without a scheduler: none
	for _, parameter := range own {
		all = append(all, of(knob.OwnParameter+parameter.Name()))
	}
	return all
}

// ofInterface lists the settings of an interface that a driver may set with id: those of one group
// of ethtool, or, when it starts the NIC again, all. Secrets stay out of every record.
func (l *Host) ofInterface(name string, id knob.ID, group string) []knob.ID {
	var all []knob.ID
	add := func(other knob.ID) {
		if other != id {
			all = append(all, other)
		}
	}
	for _, d := range l.catalog.All() {
		attribute := d.Pattern.Attribute()
		inGroup := group == "" || d.Pattern.Kind() == knob.KindEthtool && strings.HasPrefix(attribute, group+".")
		if d.Secret || strings.Contains(attribute, "*") || !inGroup {
			continue
		}
		switch d.Pattern.Kind() {
		case knob.KindLink, knob.KindEthtool:
			add(knob.ID(d.Pattern.Kind() + ":" + name + "/" + attribute))
		}
	}
	more, moving := offered(name, group)
	for _, attribute := range more {
		if other := knob.ID("ethtool:" + name + "/" + attribute); !slices.Contains(all, other) {
			add(other)
		}
	}
	all = slices.DeleteFunc(all, func(other knob.ID) bool { return slices.Contains(moving, other.Attribute()) })
	if group != "" {
		return all
	}
	// The kernel sets it to the MTU of the link (addrconf_notify), whatever it was.
	add(knob.SysctlID("net", "ipv6", "conf", name, "mtu"))
	// The files of a queue go with the queue (net_rx_queue_update_kobjects); a driver that requests
	// its interrupts anew gets their default affinity.
	all = append(all, l.ofQueues(name)...)
	vectors, _ := os.ReadDir("/sys/class/net/" + name + "/device/msi_irqs") // not every NIC has them
	for _, v := range vectors {
		add(knob.ID("irq:" + v.Name() + "/affinity"))
	}
	return all
}

// ofQueues lists the settings of the queues that an interface has.
func (l *Host) ofQueues(name string) []knob.ID {
	link, err := withClient(func(c *nl.Client) (nl.Link, error) { return c.LinkByName(name) })
	if err != nil {
		return nil
	}
	var all []knob.ID
	for _, d := range l.catalog.All() {
		if d.Pattern.Kind() != knob.KindQueue {
			continue
		}
		_, queue, _ := strings.Cut(d.Pattern.Subject(), "/")
		for _, subject := range queues([]nl.Link{link}, strings.TrimSuffix(queue, "-*")) {
			all = append(all, knob.ID("queue:"+subject+"/"+d.Pattern.Attribute()))
		}
	}
	return all
}

// offered lists the features and private flags that the driver of an interface lets change, and
// what moves without any write: under adaptive moderation a driver may show the times of the
// moment, and negotiated flow control shows what both ends agreed on, some time after the link is
// up.
func offered(name, group string) (more, moving []string) {
	_ = do(func(client *nl.Client) error { // what cannot be listed cannot be compared
		c := ethtool.New(client)
		if group == "" || group == "feature" {
			features, _ := c.Features(name)
			for feature, f := range features {
				if !f.Fixed {
					more = append(more, "feature."+feature)
				}
			}
		}
		if group == "" || group == "flag" {
			flags, _ := c.PrivateFlags(name)
			for flag := range flags {
				more = append(more, "flag."+flag)
			}
		}
		coalesce, _ := c.Coalesce(name)
		for _, way := range []string{"rx", "tx"} {
			if coalesce["adaptive-"+way] != 0 {
				for _, time := range []string{"-usecs", "-frames", "-usecs-irq", "-frames-irq"} {
					moving = append(moving, "coalesce."+way+time)
				}
			}
		}
		if p, err := c.Pause(name); err == nil && p.Autoneg {
			moving = append(moving, "pause.rx", "pause.tx")
		}
		return nil
	})
	slices.Sort(more)
	return more, moving
}
