package runs

import (
	"cmp"
	"time"
)

// checkpointEvery limits both the loss if the program is killed and the cost of storing: a save is
// two fsyncs, some milliseconds on a disk.
const checkpointEvery = 2 * time.Second

// Recorder stores one run while it grows. It is not safe for concurrent use.
type Recorder struct {
	ID    string
	store Store
	now   func() time.Time
	saved time.Time
}

// Begin returns a Recorder for a new run. It writes nothing before the first checkpoint.
func (s Store) Begin(id string, now func() time.Time) *Recorder {
	return &Recorder{ID: id, store: s, now: now}
}

// Checkpoint stores the present state, at most every two seconds; it calls document only then. It
// does not report a failure: a full disk must not end a running experiment, and Finish detects it
// too.
func (r *Recorder) Checkpoint(document func() ([]byte, error)) {
	now := r.now()
	if !r.saved.IsZero() && now.Sub(r.saved) < checkpointEvery {
		return
	}
	r.saved = now
	_ = r.save(document) // the error is ignored, see above
}

// Keep stores the present state at once, for what must not be lost with the program. Like
// Checkpoint it does not report a failure.
func (r *Recorder) Keep(document func() ([]byte, error)) {
	r.saved = r.now()
	_ = r.save(document)
}

// Finish stores the final state of the run and removes old runs. Its error is the reason why the
// final state is not stored.
func (r *Recorder) Finish(document func() ([]byte, error)) error {
	err := r.save(document)
	pruned := r.store.Prune(r.ID) // also after a failed save: the disk may have been full
	return cmp.Or(err, pruned)
}

func (r *Recorder) save(document func() ([]byte, error)) error {
	doc, err := document()
	if err != nil {
		return err
	}
	return r.store.Save(r.ID, doc)
}
