// Package discover finds functions in machine code (x86-64) that neither symbols nor call frame information tell of.
package discover
