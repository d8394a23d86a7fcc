// Package foremost has a thread run before others, for the moments in which a stopped process waits for it.
package foremost
