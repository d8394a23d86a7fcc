// Package recorder makes one recording of a live process: it attaches, plans and places the probes, drains what they
// write to a reel, and detaches leaving the process byte for byte as it was.
package recorder
