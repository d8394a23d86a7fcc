// Package markers knows what --markers and --pair ask for: which markers of which images are recorded, where their arguments are, and what the events mean that stubs have written.
package markers
