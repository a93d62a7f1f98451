package traffic

import "context"

// Runner runs one test against one far end, from the first connection to the result. progress, when
// not nil, receives every finished interval in order. A test that the far end cannot run returns
// ErrBadSpec.
type Runner func(ctx context.Context, spec Spec, progress func(Interval)) (*Result, error)
