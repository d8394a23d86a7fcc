// Package invoke calls a function of a live process, in one of its threads, where that does no harm.
package invoke
