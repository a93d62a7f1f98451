package knob

import "context"

// Catalogued is a backend that knows no knob outside the built-in catalogue. The journal needs it
// below: a journal is a file, which may be damaged or forged.
type Catalogued struct{ Backend }

// Unwrap returns the backend below; see As.
func (b Catalogued) Unwrap() Backend { return b.Backend }

// Read implements Backend.
func (b Catalogued) Read(ctx context.Context, id ID) (Value, error) {
	if err := inCatalogue("read", id); err != nil {
		return "", err
	}
	return b.Backend.Read(ctx, id)
}

// Write implements Backend.
func (b Catalogued) Write(ctx context.Context, id ID, v Value) error {
	if err := inCatalogue("write", id); err != nil {
		return err
	}
	return b.Backend.Write(ctx, id, v)
}

// CheckWrite implements Checker, as far as the backend below does.
func (b Catalogued) CheckWrite(ctx context.Context, id ID, v Value) error {
	if err := inCatalogue("check", id); err != nil {
		return err
	}
	if below, ok := b.Backend.(Checker); ok {
		return below.CheckWrite(ctx, id, v)
	}
	return nil
}

// inCatalogue checks the name as the journal has it: a spelling that is not canonical was never
// written there.
func inCatalogue(op string, id ID) error {
	canonical, err := ParseID(string(id))
	if err != nil {
		return err
	}
	if _, known := Catalogue().Lookup(id); !known || canonical != id {
		return &Error{Op: op, Knob: id, Err: ErrUnknown}
	}
	return nil
}
