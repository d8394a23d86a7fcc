package probes

import "errors"

// ErrNotSettable: a recording can't be changed in that way while it is on.
var ErrNotSettable = errors.New("this recording can't be changed like that")
