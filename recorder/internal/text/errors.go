package text

import (
	"errors"

	"github.com/callreel/callreel/isa/amd64"
)

// PageSize is that of the pages that text is written by, in bytes.
const PageSize = amd64.PageSize

// Err: text isn't what it should be.
var Err = errors.New("the text differs from what it should be")

// errCrosses: no plan makes such a patch.
var errCrosses = errors.New("a patch crosses a page")
