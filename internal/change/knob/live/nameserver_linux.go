package live

import (
	"context"
	"fmt"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/nameserver"
)

// serverKnobs are options of one program's configuration files. Only those of the catalogue are
// written: other lines of such a file can name programs to run.
type serverKnobs nameserver.Kind

func (k serverKnobs) read(path, option string) (knob.Value, error) {
	if err := k.known(path, option); err != nil {
		return "", err
	}
	v, err := nameserver.Read(nameserver.Kind(k), path, option)
	return knob.Value(v), err
}

func (k serverKnobs) write(path, option string, v knob.Value) error {
	if err := k.known(path, option); err != nil {
		return err
	}
	// Half a write would leave a server that is down: the caller's context does not stop it.
	return nameserver.Write(context.Background(), nameserver.Kind(k), path, option, string(v))
}

func (k serverKnobs) check(path, option string, v knob.Value) error {
	return nameserver.Check(nameserver.Kind(k), path, option, string(v))
}

func (k serverKnobs) known(path, option string) error {
	id := knob.ID(string(k) + ":" + path + "/" + option)
	if _, ok := knob.Catalogue().Lookup(id); !ok {
		return fmt.Errorf("%w: linerate does not change the option %s", knob.ErrNotSupported, option)
	}
	return nil
}
