package export

import (
	"context"

	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/host"
)

// Describe returns what this host is. What cannot be read is left out: the set is worth as much
// without.
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

// ProveBy looks through stored runs, newest first. A run that cannot be read is passed over: it may
// be of a later version, and is not what was requested.
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
