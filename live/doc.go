// Package live sums a recording up while it is made, by function and thread and for the last moments, with nothing written: it takes a
// recorder's events in a reel's place.
package live
