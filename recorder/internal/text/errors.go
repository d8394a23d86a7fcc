package text

import (
	"errors"

	"github.com/callreel/callreel/isa/amd64"
)

// PageSize is that of the pieces that text is written by, in bytes: the smallest page of any kernel, so that a piece is within one page.
const PageSize = amd64.PageSize

// Err: the process's text isn't what the file says, and isn't ours.
var Err = errors.New("text differs from the file")
