// Package sourcelines tells where the functions of a reel are in source files: by the symbol maps of images that are on this
// machine and are, by their IDs, those that were recorded.
package sourcelines
