//go:build !linux

package main

// privateFolder is "", the folder for temporary files, which is the user's own here or one where nobody else can remove ours.
func privateFolder() string { return "" }
