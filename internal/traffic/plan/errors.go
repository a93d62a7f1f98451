package plan

import "errors"

// ErrBadSpec is a Spec that makes no sense on any host.
var ErrBadSpec = errors.New("bad test specification")
