// Package reelnames names the functions of a reel that its recorder had no symbols for, by the symbol maps of images that
// have the same ID.
package reelnames
