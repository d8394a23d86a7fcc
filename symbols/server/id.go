package server

import (
	"encoding/hex"
	"strings"
)

// maxID bounds an ID, in digits: build IDs have 40, hardly ever more.
const maxID = 128

// parseID reads an ID in hexadecimal, in either case and with or without the dashes of a UUID.
func parseID(text string) (id string, ok bool) {
	if len(text) > maxID {
		return "", false
	}
	id = strings.ToLower(strings.ReplaceAll(text, "-", ""))
	raw, err := hex.DecodeString(id)
	return id, err == nil && len(raw) >= 2
}

// The kinds of objects that an ID has in the storage. A whole file is both debuginfo and executable.
const (
	kindDebugInfo  = "debuginfo"
	kindExecutable = "executable"
	kindWhole      = "whole"
	kindMap        = "symmap" // where a folder that symbols build has filled has it, too
	kindLease      = "lease"
)

// key is where the storage has a kind of object of an ID.
func key(id, kind string) string { return id[:2] + "/" + id[2:] + "." + kind }

// roles are the objects that may be handed out as a kind of file, in the order of asking.
func roles(kind string) []string { return []string{kind, kindWhole} }
