package header

import (
	_ "embed" // of callreel.h
	"strings"
)

//go:embed callreel.h
var text string

// Name is what the file is called by those that include it. Provider is that of its markers.
const (
	Name     = "callreel.h"
	Provider = "callreel"
)

// Reader reads the file.
func Reader() *strings.Reader { return strings.NewReader(text) }
