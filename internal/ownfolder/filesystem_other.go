//go:build !linux

package ownfolder

import "io/fs"

// Honest says whether the file system that a path is on keeps owners itself.
func Honest(string, fs.FileInfo) bool { return true }
