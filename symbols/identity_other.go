//go:build !linux && !darwin

package symbols

import "io/fs"

// fileKey is not known here; contents are read each time.
func fileKey(fs.FileInfo) string { return "" }
