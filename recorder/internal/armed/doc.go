// Package armed keeps the last moments of a process in the rings, which threads overwrite, and dumps them into files when a trigger fires,
// when somebody asks, or when the process ends.
package armed
