package ground

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/lab/guest"
)

// Options are what a scenario asks of its guest. Processors, memory, modules and programs that
// every world needs are added by [Boot].
type Options = guest.Options

// drivers are the modules of the cards that QEMU emulates and that come in pairs, by the model
// without its properties.
var drivers = map[string]string{
	"e1000": "e1000", "e1000-82540em": "e1000", "e1000-82544gc": "e1000", "e1000-82545em": "e1000", "e1000e": "e1000e",
	"rtl8139":        "8139cp",
	"virtio-net-pci": "virtio_net", "vmxnet3": "vmxnet3",
}

// modules of every ground: what joins hosts, what shapes and loses, what filters and tracks. They
// are loaded in this order, in which crc32c_generic must come before connection tracking: libcrc32c
// asks for it in a way that module dependencies do not tell (a soft one, modprobe.d(5)).
var modules = []string{
	"crc32c_generic",
	"af_packet", "veth", "tun", "ifb", "inet_diag", "tcp_diag", "udp_diag", "tcp_bbr",
	"sch_cake", "sch_fq", "sch_fq_codel", "sch_ingress", "sch_netem", "sch_tbf", "cls_matchall", "act_police",
	"nf_tables", "nf_conntrack", "nf_conntrack_netlink", "nft_ct", "nft_limit",
}

// programs of every ground.
var programs = []string{"nft", "tc"}

// defaultMemory is what the program, its copies as hosts, and a conntrack table of some ten
// thousand entries need.
const defaultMemory = 1 << 30

// Ground is a guest that is up. One command at a time is served.
type Ground struct{ guest *guest.Guest }

// Complete gives the options with what every ground has. Equal results mean that one guest serves
// both. Without a number of processors there are two, one for each host of a pair, or one if its
// clock counts. A card of a model that the package does not know needs its module named.
func Complete(o Options) Options {
	if o.CPUs == 0 {
		o.CPUs = 2
		if o.Counted {
			o.CPUs = 1
		}
	}
	if o.MemoryBytes == 0 {
		o.MemoryBytes = defaultMemory
	}
	all := slices.Clone(modules)
	for _, c := range o.Cards {
		model, _, _ := strings.Cut(c.Model, ",")
		if d, ok := drivers[model]; ok && !slices.Contains(all, d) && !slices.ContainsFunc(o.Modules, names(d)) {
			all = append(all, d)
		}
	}
	o.Modules = append(all, o.Modules...)
	o.Programs = append(slices.Clone(programs), o.Programs...)
	return o
}

// names tells whether an entry of Options.Modules is of a module.
func names(module string) func(string) bool {
	return func(entry string) bool {
		name, _, _ := strings.Cut(entry, " ")
		return name == module
	}
}

// Boot makes a ground and returns when it takes commands; the context bounds that time. The calling
// program must call guest.Init first in its main: it is the guest's first process and its linerate.
// Errors are those of guest.Boot.
func Boot(ctx context.Context, o Options) (*Ground, error) {
	g, err := guest.Boot(ctx, Complete(o))
	if err != nil {
		return nil, err
	}
	return &Ground{g}, nil
}

// Release is that of the guest's kernel: "6.1.0-56-amd64".
func (g *Ground) Release() string { return g.guest.Release }

// Linerate runs a command of linerate in the guest to its end, as root in its first namespaces, and
// gives its exit status. A nil stderr sends both outputs to stdout. The error is for what kept the
// command from running to an end: a guest that died, or ctx.
func (g *Ground) Linerate(ctx context.Context, stdout, stderr io.Writer, args ...string) (status int, err error) {
	if len(args) == 0 {
		return -1, errors.New("run linerate in guest: no command")
	}
	status, err = g.guest.Run(ctx, guest.Command{Args: append([]string{"/init"}, args...), As: "linerate"},
		stdout, stderr)
	if err != nil {
		return status, fmt.Errorf("linerate %s: %w", args[0], err)
	}
	return status, nil
}

// Console is the end of what the guest's kernel has said.
func (g *Ground) Console() string { return g.guest.Console() }

// Close ends the guest.
func (g *Ground) Close() error { return g.guest.Close() }
