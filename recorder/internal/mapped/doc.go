// Package mapped knows a file as a process has it mapped: where it is, which of its functions may be probed, and what of its text the
// process has otherwise than the file.
package mapped
