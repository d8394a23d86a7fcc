//go:build !linux

package object

import "os"

// openQuietly opens a file for reading if it is a regular one.
func openQuietly(path string) (*os.File, error) { return openAsked(path) }
