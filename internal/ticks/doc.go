// Package ticks reads the processor's clock on which all events of a recording are.
package ticks
