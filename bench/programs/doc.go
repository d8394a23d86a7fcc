// Package programs keeps real programs at work whose answers are known, so that it shows when a recording has changed one.
package programs
