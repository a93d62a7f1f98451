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
	"github.com/linerate/linerate/internal/host/solaris"
	"github.com/linerate/linerate/internal/kernel/tool"
)

// Solaris returns the backend of an illumos or Solaris host.
func Solaris(catalog *knob.Catalog, run tool.Runner, files durable.FS) *Host {
	return &Host{catalog: catalog, root: "root, or the profile Network Management", kinds: map[string]accessor{
		knob.KindIpadm:  protocols{run},
		knob.KindDladm:  links{run},
		knob.KindDriver: drivers{files},
	}}
}

// protocols are the properties of ipadm. A release without it (Solaris 10) has ndd.
type protocols struct{ run tool.Runner }

// nddNames are what ndd calls the properties whose names changed; of the others it has the name of
// the protocol in place of the underscore.
var nddNames = map[string]string{"send_buf": "xmit_hiwat", "recv_buf": "recv_hiwat"}

func nddName(id knob.ID) string {
	name, ok := nddNames[id.Attribute()]
	if !ok {
		name = strings.TrimPrefix(id.Attribute(), "_")
	}
	return id.Subject() + "_" + name
}

func (k protocols) property(ctx context.Context, id knob.ID) (solaris.Property, error) {
	out, err := k.run.Run(ctx, "ipadm", "show-prop", "-c", "-o", solaris.Columns, "-p", id.Attribute(), id.Subject())
	if errors.Is(err, tool.ErrNoProgram) {
		out, err = k.run.Run(ctx, "ndd", "-get", "/dev/"+id.Subject(), nddName(id))
		value := strings.TrimSpace(string(out))
		if err == nil && value == "" {
			err = errUnreadable
		}
		return solaris.Property{Writable: true, Current: value}, answered(err)
	}
	if err != nil {
		return solaris.Property{}, answered(err)
	}
	return solaris.ParseProperty(string(out))
}

func (k protocols) read(ctx context.Context, id knob.ID) (knob.Value, error) {
	p, err := k.property(ctx, id)
	return knob.Value(p.Current), err
}

// buffers are limited by max_buf of their protocol. POSSIBLE does not follow it.
var buffers = []string{"send_buf", "recv_buf"}

func (k protocols) check(ctx context.Context, id knob.ID, v knob.Value) error {
	p, err := k.property(ctx, id)
	switch {
	case err != nil:
		return err
	case !p.Writable:
		return knob.ErrReadOnly
	}
	if !slices.Contains(buffers, id.Attribute()) {
		return possible(p, v)
	}
	limit := knob.ID(knob.KindIpadm + ":" + id.Subject() + "/max_buf")
	most, err := k.property(ctx, limit)
	if err != nil {
		return nil // the system itself refuses then
	}
	n, errValue := strconv.ParseInt(string(v), 10, 64)
	m, errLimit := strconv.ParseInt(most.Current, 10, 64)
	if errValue == nil && errLimit == nil && n > m {
		return &knob.RangeError{Value: v, Allowed: fmt.Sprintf("at most %d, which is max_buf: raise %s first", m, limit)}
	}
	return nil
}

// possible refuses what the program itself lists as impossible.
func possible(p solaris.Property, v knob.Value) error {
	if !p.Allows(string(v)) {
		return &knob.RangeError{Value: v, Allowed: "one of " + p.Possible}
	}
	return nil
}

func (k protocols) write(ctx context.Context, id knob.ID, v knob.Value) error {
	// -t leaves the next start as it is: what is proven is persisted later.
	_, err := k.run.Run(ctx, "ipadm", "set-prop", "-t", "-p", id.Attribute()+"="+string(v), id.Subject())
	if errors.Is(err, tool.ErrNoProgram) {
		_, err = k.run.Run(ctx, "ndd", "-set", "/dev/"+id.Subject(), nddName(id), string(v))
	}
	return answered(err)
}

func (k protocols) list(context.Context, knob.ID) ([]knob.ID, error) { return nil, nil }

// links are the properties of dladm.
type links struct{ run tool.Runner }

func (k links) property(ctx context.Context, id knob.ID) (solaris.Property, error) {
	out, err := k.run.Run(ctx, "dladm", "show-linkprop", "-c", "-o", solaris.LinkColumns, "-p", id.Attribute(),
		id.Subject())
	if err != nil {
		return solaris.Property{}, answered(err)
	}
	p, err := solaris.ParseProperty(string(out))
	if err == nil && p.Current == "" {
		err = fmt.Errorf("%w: %s does not know this property", knob.ErrNotSupported, id.Subject())
	}
	return p, err
}

func (k links) read(ctx context.Context, id knob.ID) (knob.Value, error) {
	p, err := k.property(ctx, id)
	return knob.Value(p.Current), err
}

func (k links) check(ctx context.Context, id knob.ID, v knob.Value) error {
	p, err := k.property(ctx, id)
	switch {
	case err != nil:
		return err
	case !p.Writable:
		return knob.ErrReadOnly
	}
	return possible(p, v)
}

func (k links) write(ctx context.Context, id knob.ID, v knob.Value) error {
	_, err := k.run.Run(ctx, "dladm", "set-linkprop", "-t", "-p", id.Attribute()+"="+string(v), id.Subject())
	return answered(err)
}

// list names the physical links; properties with an underscore belong to the driver e1000g.
func (k links) list(ctx context.Context, pattern knob.ID) ([]knob.ID, error) {
	out, err := k.run.Run(ctx, "dladm", "show-phys", "-p", "-o", "LINK,DEVICE")
	if err != nil {
		return nil, answered(err)
	}
	var ids []knob.ID
	for line := range strings.Lines(string(out)) {
		f := solaris.Fields(line)
		private := strings.HasPrefix(pattern.Attribute(), "_")
		if len(f) == 2 && f[0] != "" && (!private || strings.HasPrefix(f[1], "e1000g")) {
			ids = append(ids, knob.ID(knob.KindDladm+":"+f[0]+"/"+pattern.Attribute()))
		}
	}
	return ids, nil
}

// drivers are the numbers of one instance in /kernel/drv/NAME.conf.
type drivers struct{ files durable.FS }

// file returns the path, the text and the instance of a knob.
func (k drivers) file(id knob.ID) (path, text string, instance int, err error) {
	driver, number, ok := strings.Cut(id.Subject(), "/")
	instance, numberErr := strconv.Atoi(number)
	if !ok || numberErr != nil || instance < 0 || strings.ContainsAny(driver, "./") {
		return "", "", 0, fmt.Errorf("%w: want driver:NAME/INSTANCE/PROPERTY", fs.ErrNotExist)
	}
	path = "/kernel/drv/" + driver + ".conf"
	b, err := k.files.ReadFile(path)
	return path, string(b), instance, err
}

func (k drivers) read(_ context.Context, id knob.ID) (knob.Value, error) {
	_, text, instance, err := k.file(id)
	if err != nil {
		return "", err
	}
	if value, _, _, found := solaris.Conf(text, id.Attribute(), instance); found {
		return knob.Value(value), nil
	}
	return knob.Absent, nil
}

func (k drivers) check(_ context.Context, id knob.ID, v knob.Value) error {
	_, text, instance, err := k.file(id)
	if err != nil {
		return err
	}
	_, _, _, found := solaris.Conf(text, id.Attribute(), instance)
	if (v == knob.Absent) == found {
		return fmt.Errorf("%w: the file has no list with a number for this instance, or it cannot lose it: edit it by hand",
			knob.ErrReadOnly)
	}
	return nil
}

func (k drivers) write(_ context.Context, id knob.ID, v knob.Value) error {
	path, text, instance, err := k.file(id)
	if err != nil {
		return err
	}
	_, at, end, found := solaris.Conf(text, id.Attribute(), instance)
	if !found {
		return knob.ErrReadOnly
	}
	mode := fs.FileMode(0o644)
	if info, err := k.files.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	return durable.Replace(k.files, path, []byte(text[:at]+string(v)+text[end:]), mode)
}

func (k drivers) list(_ context.Context, pattern knob.ID) ([]knob.ID, error) {
	driver, _, _ := strings.Cut(pattern.Subject(), "/")
	b, err := k.files.ReadFile("/kernel/drv/" + driver + ".conf")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	const mostInstances = 16
	var ids []knob.ID
	for i := range mostInstances {
		if _, _, _, found := solaris.Conf(string(b), pattern.Attribute(), i); found {
			ids = append(ids, knob.ID(fmt.Sprintf("%s:%s/%d/%s", knob.KindDriver, driver, i, pattern.Attribute())))
		}
	}
	return ids, err
}
