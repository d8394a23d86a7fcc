package text

import (
	"errors"

	"github.com/callreel/callreel/isa/amd64"
)

// PageSize is that of the pages that text is written by, in bytes.
const PageSize = amd64.PageSize

// Err: the process's text isn't what the file says, and isn't ours.
var Err = errors.New("text differs from the file")
