package live

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/route"
)

// Instances lists the knobs of this host that a definition covers: the knob that it names, or one
// for each interface, queue, route, interrupt or mount that matches its pattern. It leaves out
// knobs that have their own definition. Read shows whether they are readable.
func (l *Host) Instances(ctx context.Context, d knob.Definition) ([]knob.ID, error) {
	if err := ctx.Err(); err != nil {
		return nil, &knob.Error{Op: "list", Knob: d.Pattern, Err: err}
	}
	if !strings.Contains(string(d.Pattern), "*") {
		return []knob.ID{d.Pattern}, nil
	}
	all, err := l.instances(d.Pattern)
	if err != nil {
		return nil, &knob.Error{Op: "list", Knob: d.Pattern, Err: err}
	}
	var own []knob.ID
	for _, id := range all {
		if best, ok := l.catalog.Lookup(id); ok && best.Pattern == d.Pattern {
			own = append(own, id)
		}
	}
	return own, nil
}

func (l *Host) instances(pattern knob.ID) ([]knob.ID, error) {
	subject, attribute := pattern.Subject(), pattern.Attribute()
	of := func(subjects []string) []knob.ID {
		out := make([]knob.ID, len(subjects))
		for i, s := range subjects {
			out[i] = knob.ID(pattern.Kind() + ":" + s + "/" + attribute)
		}
		return out
	}
	switch pattern.Kind() {
	case knob.KindSysctl:
		return l.sysctlInstances(pattern)
	case knob.KindRoute:
		routes, err := withClient(func(c *nl.Client) ([]route.Route, error) { return route.New(c).List() })
		var to []string
		for _, r := range routes {
			if !slices.Contains(to, r.Destination) {
				to = append(to, r.Destination)
			}
		}
		return of(to), err
	case knob.KindCPU, knob.KindPCI, knob.KindBlock:
		parts, err := map[string]hostKnobs{knob.KindCPU: cpuKnobs(cpuRoot), knob.KindPCI: pciKnobs(pciRoot),
			knob.KindBlock: blockKnobs(blockRoot)}[pattern.Kind()].subjects()
		return of(parts), err
	case knob.KindIRQ:
		numbers, err := interrupts("/proc/irq")
		return of(numbers), err
	case knob.KindNFS:
		points, err := nfsMounts("/proc/thread-self/mounts")
		var at []string
		for _, m := range points {
			at = append(at, m.point)
		}
		return of(at), err
	case knob.KindLink, knob.KindQdisc, knob.KindEthtool, knob.KindQueue:
		links, err := withClient(func(c *nl.Client) ([]nl.Link, error) { return c.Links() })
		if err != nil {
			return nil, err
		}
		switch list := names(links); {
		case pattern.Kind() == knob.KindQueue:
			_, queue, _ := strings.Cut(subject, "/")
			return of(queues(links, strings.TrimSuffix(queue, "-*"))), nil
		case strings.Contains(attribute, "*"):
			return nil, fmt.Errorf("%w: %s stands for whatever a driver offers", knob.ErrNotSupported, attribute)
		default:
			return of(list), nil
		}
	}
	return nil, fmt.Errorf("%w: no way to list this kind of knob", knob.ErrNotSupported)
}

// sysctlInstances looks into the directory where the star stands.
func (l *Host) sysctlInstances(pattern knob.ID) ([]knob.ID, error) {
	elements := pattern.Path()
	star := slices.Index(elements, "*")
	if star < 0 {
		return nil, fmt.Errorf("%w: a star within a word", knob.ErrNotSupported)
	}
	entries, err := os.ReadDir(filepath.Join(l.root, filepath.Join(elements[:star]...)))
	if err != nil {
		return nil, err
	}
	var out []knob.ID
	for _, e := range entries {
		one := slices.Clone(elements)
		one[star] = e.Name()
		out = append(out, knob.SysctlID(one...))
	}
	return out, nil
}

// queues returns eth0/rx-0 and so on. rtnetlink reports their number, so naming them needs no
// sysfs; the kernel shows no files of queues that are allocated but not in use.
func queues(links []nl.Link, direction string) []string {
	var out []string
	for _, l := range links {
		n := l.RxQueues
		if direction == "tx" {
			n = l.TxQueues
		}
		for i := range n {
			out = append(out, fmt.Sprintf("%s/%s-%d", l.Name, direction, i))
		}
	}
	return out
}

// interrupts lists the numbers in ascending order.
func interrupts(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && e.IsDir() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	out := make([]string, len(numbers))
	for i, n := range numbers {
		out[i] = strconv.Itoa(n)
	}
	return out, nil
}
