// Package tables gives the images and functions of recordings their numbers in a reel.
//
// Stubs write the number that a function got when it was chosen: its target ID. A reel numbers functions by itself. Either both are the
// same, and all functions stand in the reel from the beginning (Fixed), or a function is put into the reel when its first event comes
// (Late): so the reel of a large program has only those that were called. Recordings that share a reel share its tables (Shared).
package tables
