package sys

import "errors"

// ErrTimeout is a blocking call that slept as long as it was allowed to, see [SetTimeout].
var ErrTimeout = errors.New("timed out")
