package export

import (
	"context"

	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/host"
)

// Describe fills in a description of this host. It leaves out what it cannot read: the set is as
// useful without.
func (o *Origin) Describe(ctx context.Context) {
	snapshot, err := host.Root{}.Snapshot(ctx)
	if err != nil {
		return
	}
	o.Kernel = snapshot.Kernel
	o.Drivers = map[string]string{}
	for _, i := range snapshot.Interfaces {
		if i.Driver != "" {
			o.Drivers[i.Name] = i.Driver
		}
	}
}

// ProveBy searches stored runs, newest first. It skips a run that cannot be read, which may come
// from a later version and is not the one needed.
func (set *Set) ProveBy(store runs.Store) error {
	ids, err := store.List()
	if err != nil {
		return err
	}
	for _, id := range ids {
		doc, err := store.Read(id)
		if err != nil {
			continue
		}
		run, err := ReadTune(doc, Near)
		if err == nil {
			set.Prove(run, id)
		}
	}
	return nil
}
