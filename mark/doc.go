// Package mark lets Go programs say what they do, in spans, flows, counters and instants, by functions that do nothing and that callreel records.
package mark
