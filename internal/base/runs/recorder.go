package runs

import (
	"cmp"
	"time"
)

// checkpointEvery bounds what the death of the program loses, and what storing costs: a save is two
// fsyncs, some milliseconds on a disk.
const checkpointEvery = 2 * time.Second

// Recorder stores one run as it grows. It is for one goroutine.
type Recorder struct {
	ID    string
	store Store
	now   func() time.Time
	saved time.Time
}

// Begin names a new run. Nothing is written before its first checkpoint.
func (s Store) Begin(id string, now func() time.Time) *Recorder {
	return &Recorder{ID: id, store: s, now: now}
}

// Checkpoint stores what is known so far, at most every two seconds; document is called only then.
// A failure is not told: a full disk must not end an experiment that is under way, and Finish finds
// it too.
func (r *Recorder) Checkpoint(document func() ([]byte, error)) {
	now := r.now()
	if !r.saved.IsZero() && now.Sub(r.saved) < checkpointEvery {
		return
	}
	r.saved = now
	_ = r.save(document) // as said above
}

// Finish stores the end of the run and makes room for it. It gives the reason why the run is not
// stored as it ended.
func (r *Recorder) Finish(document func() ([]byte, error)) error {
	err := r.save(document)
	pruned := r.store.Prune(r.ID) // also when saving failed: it may have been for want of room
	return cmp.Or(err, pruned)
}

func (r *Recorder) save(document func() ([]byte, error)) error {
	doc, err := document()
	if err != nil {
		return err
	}
	return r.store.Save(r.ID, doc)
}
