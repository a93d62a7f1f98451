package sys

import "errors"

// ErrTimeout reports that a blocking call slept for its maximum time, see [SetTimeout].
var ErrTimeout = errors.New("timed out")
