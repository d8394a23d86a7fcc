// Package markindex answers what a screen asks of a reel's marks: the spans, counters, instants and flows in a range of time at a
// resolution, and what is known of one of them.
package markindex
