// Package budget keeps what recording costs a process within a share of the processor time that the process uses: it finds out which functions
// cost most and tell least, has them switched off and their sites taken out, and looks again while the load changes.
package budget
