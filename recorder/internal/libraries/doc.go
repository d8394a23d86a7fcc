// Package libraries probes the libraries that a process loads while it is recorded, and forgets those that it unloads.
package libraries
