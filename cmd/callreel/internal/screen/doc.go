// Package screen is a terminal for a page that is drawn over and over: the alternate screen, raw mode, keys, and the way back from there,
// whatever happens.
package screen
