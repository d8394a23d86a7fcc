// Package causes keeps programs whose rare slow requests have one planted cause, and judges what is said about them.
package causes
