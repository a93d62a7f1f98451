package matrix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/lab/guest"
)

// drivers maps the cards that QEMU emulates in pairs to their modules, by the model without its
// properties.
var drivers = map[string]string{
	"e1000": "e1000", "e1000-82540em": "e1000", "e1000-82544gc": "e1000", "e1000-82545em": "e1000", "e1000e": "e1000e",
	"rtl8139":        "8139cp",
	"virtio-net-pci": "virtio_net", "vmxnet3": "vmxnet3",
}

// groundModules are the modules of every ground: what joins hosts, shapes and loses packets,
// filters and tracks connections. The guest has no modprobe(8), so modules that a running kernel
// would load on demand are listed too. They are loaded in this order. crc32c_generic must precede
// connection tracking: libcrc32c needs it by a soft dependency (modprobe.d(5)), which module files
// do not name.
var groundModules = []string{
	"crc32c_generic",
	"af_packet", "veth", "tun", "ifb", "inet_diag", "tcp_diag", "udp_diag", "tcp_bbr",
	"sch_cake", "sch_fq", "sch_fq_codel", "sch_ingress", "sch_netem", "sch_tbf", "cls_matchall", "act_police",
	"nf_tables", "nf_conntrack", "nf_conntrack_netlink", "nft_ct", "nft_limit",
}

// groundPrograms are the programs of every ground.
var groundPrograms = []string{"nft", "tc"}

// groundMemory suffices for the program, its copies as hosts, and a conntrack table of some ten
// thousand entries.
const groundMemory = 1 << 30

// ground is a guest in which practice worlds are played, with this program as the program under
// test. It serves one command at a time.
//
// The code that makes a world in a guest is the code that makes it on the machine: hosts are
// namespaces of the guest's kernel. Two things differ. Two emulated cards on one wire, moved into
// the namespaces, join the hosts; and scenarios may write the settings of the whole machine
// (net.core, conntrack, neighbour tables), because the guest has no other user.
//
// One guest serves scenario after scenario: a world that ends returns its cards to the guest's
// first namespace. Booting costs six to ten seconds, so scenarios with equal options share one.
type ground struct{ guest *guest.Guest }

// complete adds to a scenario's options what every ground has. Scenarios with equal results can
// share a guest. The default is two processors, one for each host of a pair, or one processor where
// the guest's clock counts instructions. A card of a model that drivers lacks needs its module
// named.
func complete(o guest.Options) guest.Options {
	if o.CPUs == 0 {
		o.CPUs = 2
		if o.Counted {
			o.CPUs = 1
		}
	}
	if o.MemoryBytes == 0 {
		o.MemoryBytes = groundMemory
	}
	all := slices.Clone(groundModules)
	for _, c := range o.Cards {
		model, _, _ := strings.Cut(c.Model, ",")
		if d, ok := drivers[model]; ok && !slices.Contains(all, d) && !slices.ContainsFunc(o.Modules, loads(d)) {
			all = append(all, d)
		}
	}
	o.Modules = append(all, o.Modules...)
	o.Programs = append(slices.Clone(groundPrograms), o.Programs...)
	return o
}

// loads returns a function that reports whether an entry of guest.Options.Modules loads a module.
func loads(module string) func(string) bool {
	return func(entry string) bool {
		name, _, _ := strings.Cut(entry, " ")
		return name == module
	}
}

// bootGround boots a guest with complete options and returns when it takes commands; the context
// bounds that time. The calling program must call guest.Init first in its main: it is the guest's
// first process and its linerate. Errors are those of guest.Boot.
func bootGround(ctx context.Context, o guest.Options) (*ground, error) {
	g, err := guest.Boot(ctx, o)
	if err != nil {
		return nil, err
	}
	return &ground{g}, nil
}

// release returns the release of the guest's kernel: "6.1.0-56-amd64".
func (g *ground) release() string { return g.guest.Release }

// linerate runs a command of linerate in the guest to its end, as root in its first namespaces, and
// returns the exit status. A nil stderr sends both outputs to stdout. The error reports what kept
// the command from running to its end: a guest that died, or ctx.
func (g *ground) linerate(ctx context.Context, stdout, stderr io.Writer, args ...string) (status int, err error) {
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

// close ends the guest.
func (g *ground) close() error { return g.guest.Close() }
