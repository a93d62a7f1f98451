package native

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/host/freebsd"
	"github.com/linerate/linerate/internal/kernel/mib"
	"github.com/linerate/linerate/internal/kernel/tool"
)

// FreeBSD returns the backend of a FreeBSD host.
func FreeBSD(catalog *knob.Catalog, tree mib.Tree, run tool.Runner, files durable.FS) *Host {
	return &Host{catalog: catalog, root: "root", changed: purge(tree), kinds: map[string]accessor{
		knob.KindSysctl:   sysctls{tree},
		knob.KindIfconfig: interfaces{run},
		knob.KindLoader:   loader{files, tree},
	}}
}

// purge empties the cache of what peers allowed, for an hour, to earlier connections: it would
// carry the result of one setting into the measurement of the next. A kernel without the cache has
// nothing to empty.
func purge(tree mib.Tree) func(knob.ID) {
	return func(id knob.ID) {
		if !id.InFile() {
			_ = tree.Set("net.inet.tcp.hostcache.purgenow", "1")
		}
	}
}

// sysctls are the settings of the kernel.
type sysctls struct{ tree mib.Tree }

func (k sysctls) read(_ context.Context, id knob.ID) (knob.Value, error) {
	n, err := k.tree.Get(id.Attribute())
	if errors.Is(err, mib.ErrOpaque) {
		return "", fmt.Errorf("%w: %w", knob.ErrNotSupported, err)
	}
	return knob.Value(n.Value), err
}

// check separates a setting of the loader from one that needs root: the kernel answers EPERM to
// both. One number is only ever raised (kern_mbuf.c, sysctl_nmbclusters).
func (k sysctls) check(_ context.Context, id knob.ID, v knob.Value) error {
	n, err := k.tree.Get(id.Attribute())
	switch {
	case err != nil:
		return err
	case !n.Writable && n.Tunable:
		return fmt.Errorf("%w: the loader sets it before the kernel starts: set loader:%s and restart", knob.ErrReadOnly,
			id.Attribute())
	case !n.Writable:
		return knob.ErrReadOnly
	}
	if id.Attribute() == "kern.ipc.nmbclusters" {
		now, errNow := strconv.ParseInt(n.Value, 10, 64)
		if asked, err := strconv.ParseInt(string(v), 10, 64); err == nil && errNow == nil && asked < now {
			return &knob.RangeError{Value: v, Allowed: "at least " + n.Value +
				": a running kernel only raises it, and a restart brings the former number back"}
		}
	}
	return nil
}

func (k sysctls) write(_ context.Context, id knob.ID, v knob.Value) error {
	err := k.tree.Set(id.Attribute(), string(v))
	switch {
	case errors.Is(err, mib.ErrValue):
		return &knob.RangeError{Value: v, Allowed: "a value of the setting's type", Err: err}
	case errors.Is(err, errInvalidArgument), errors.Is(err, errNoSuchProcess),
		errors.Is(err, fs.ErrNotExist) && k.exists(id):
		return &knob.RangeError{Value: v, Allowed: "a value that the kernel takes", Err: errors.New("it refused this one")}
	}
	return err
}

func (k sysctls) exists(id knob.ID) bool {
	_, err := k.tree.Get(id.Attribute())
	return err == nil
}

// list finds the units of a driver: dev.em.*.itr.
func (k sysctls) list(_ context.Context, pattern knob.ID) ([]knob.ID, error) {
	below, _, _ := strings.Cut(pattern.Attribute(), ".*")
	names, err := k.tree.Names(below)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []knob.ID
	for _, name := range names {
		if id := knob.ID(knob.KindSysctl + ":" + name); id.Fits(pattern) {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// interfaces are the options that ifconfig sets.
type interfaces struct{ run tool.Runner }

const polling = "polling"

func (k interfaces) get(ctx context.Context, name string) (freebsd.Interface, error) {
	out, err := k.run.Run(ctx, "ifconfig", "-m", name)
	if err != nil {
		return freebsd.Interface{}, answered(err)
	}
	for _, i := range freebsd.ParseIfconfig(string(out)) {
		if i.Name == name {
			return i, nil
		}
	}
	return freebsd.Interface{}, fmt.Errorf("ifconfig printed nothing about %s: %w", name, errUnreadable)
}

// errUnreadable reports a program that succeeded and did not print what it should.
var errUnreadable = errors.New("its output is empty, cut off or in another form")

func (k interfaces) read(ctx context.Context, id knob.ID) (knob.Value, error) {
	i, err := k.get(ctx, id.Subject())
	if err != nil {
		return "", err
	}
	if id.Attribute() == "mtu" {
		if i.MTUBytes <= 0 {
			return "", fmt.Errorf("no MTU: %w", errUnreadable)
		}
		return knob.Value(strconv.Itoa(i.MTUBytes)), nil
	}
	on, able, known := i.Option(id.Attribute())
	switch {
	case !known:
		return "", fmt.Errorf("%w: attribute %s", knob.ErrNotSupported, id.Attribute())
	case !able && id.Attribute() == polling:
		return "", fmt.Errorf("%w: the driver of %s or this kernel cannot poll", knob.ErrNotSupported, id.Subject())
	case !able:
		return "", fmt.Errorf("%w: %s cannot do this", knob.ErrNotSupported, id.Subject())
	case on:
		return "on", nil
	}
	return "off", nil
}

func (k interfaces) check(context.Context, knob.ID, knob.Value) error { return nil }

func (k interfaces) write(ctx context.Context, id knob.ID, v knob.Value) error {
	args := []string{id.Subject(), id.Attribute()}
	switch {
	case id.Attribute() == "mtu":
		args = append(args, string(v))
	case v == "off":
		args[1] = "-" + id.Attribute()
	}
	_, err := k.run.Run(ctx, "ifconfig", args...)
	return answered(err)
}

func (k interfaces) list(ctx context.Context, pattern knob.ID) ([]knob.ID, error) {
	out, err := k.run.Run(ctx, "ifconfig", "-m")
	if err != nil {
		return nil, answered(err)
	}
	var ids []knob.ID
	for _, i := range freebsd.ParseIfconfig(string(out)) {
		if _, able, known := i.Option(pattern.Attribute()); pattern.Attribute() == "mtu" || able && known {
			ids = append(ids, knob.ID(knob.KindIfconfig+":"+i.Name+"/"+pattern.Attribute()))
		}
	}
	return ids, nil
}

// loader are the tunables of /boot/loader.conf. What linerate sets is in a block of its own at the
// end, where it wins over earlier lines; without a line the block goes, and the file is as before.
type loader struct {
	files durable.FS
	tree  mib.Tree
}

const (
	loaderFile  = "/boot/loader.conf"
	blockBegins = "# linerate begin: linerate undo takes this block out again"
	blockEnds   = "# linerate end"
)

func (k loader) text() (string, error) {
	b, err := k.files.ReadFile(loaderFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(b), err
}

func (k loader) read(_ context.Context, id knob.ID) (knob.Value, error) {
	text, err := k.text()
	if err != nil {
		return "", err
	}
	if v, ok := freebsd.Assigned(text, id.Attribute()); ok {
		return knob.Value(v), nil
	}
	// Without a line the tunable must at least be known to the kernel, or the name is a mistake.
	if _, err := k.tree.Get(id.Attribute()); err != nil && !errors.Is(err, mib.ErrOpaque) {
		return "", err
	}
	return knob.Absent, nil
}

func (k loader) check(_ context.Context, _ knob.ID, v knob.Value) error {
	if strings.ContainsAny(string(v), "\"\\\n#") {
		return &knob.RangeError{Value: v, Allowed: "a value without quotes, backslashes and comments"}
	}
	text, err := k.text()
	if err != nil {
		return err
	}
	if _, _, err := splitBlock(text); err != nil {
		return err
	}
	return nil
}

func (k loader) write(_ context.Context, id knob.ID, v knob.Value) error {
	text, err := k.text()
	if err != nil {
		return err
	}
	others, ours, err := splitBlock(text)
	if err != nil {
		return err
	}
	prefix := id.Attribute() + "="
	ours = slices.DeleteFunc(ours, func(line string) bool { return strings.HasPrefix(line, prefix) })
	former, set := freebsd.Assigned(others, id.Attribute())
	switch {
	case v == knob.Absent && set:
		return fmt.Errorf("%w: a line of %s sets it, which only its author can take out", knob.ErrReadOnly, loaderFile)
	case v != knob.Absent && !(set && former == string(v)):
		ours = append(ours, prefix+strconv.Quote(string(v)))
	}
	mode := fs.FileMode(0o644)
	if info, err := k.files.Stat(loaderFile); err == nil {
		mode = info.Mode().Perm()
	}
	return durable.Replace(k.files, loaderFile, []byte(joinBlock(others, ours)), mode)
}

// splitBlock takes our block out of a file.
func splitBlock(text string) (others string, ours []string, err error) {
	before, rest, found := strings.Cut(text, blockBegins+"\n")
	if !found {
		return text, nil, nil
	}
	inside, after, closed := strings.Cut(rest, blockEnds+"\n")
	if !closed || strings.Contains(after, blockBegins) {
		return "", nil, fmt.Errorf("%s: the block of linerate is damaged: remove its lines by hand", loaderFile)
	}
	for line := range strings.Lines(inside) {
		ours = append(ours, strings.TrimSuffix(line, "\n"))
	}
	// The newline that joinBlock adds to a file without one at its end.
	if before, ok := strings.CutSuffix(before, noNewline); ok {
		return before[:len(before)-1] + after, ours, nil
	}
	return before + after, ours, nil
}

// noNewline marks a file whose last line had no newline, so that it can lack it again.
const noNewline = "# linerate: no newline before this line\n"

func joinBlock(others string, ours []string) string {
	if len(ours) == 0 {
		return others
	}
	if others != "" && !strings.HasSuffix(others, "\n") {
		others += "\n" + noNewline
	}
	return others + blockBegins + "\n" + strings.Join(ours, "\n") + "\n" + blockEnds + "\n"
}

// list has no units to find: patterns of tunables name the unit of a driver.
func (k loader) list(ctx context.Context, pattern knob.ID) ([]knob.ID, error) {
	ids, err := sysctls{k.tree}.list(ctx, knob.ID(knob.KindSysctl+":"+pattern.Attribute()))
	for i, id := range ids {
		ids[i] = knob.ID(knob.KindLoader + ":" + id.Attribute())
	}
	return ids, err
}
