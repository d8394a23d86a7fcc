// Package text writes a process's machine code page by page, in an order that may be broken off at any moment, and puts back what
// was there.
//
// It is told what to write by patches, each of which lies on one page, and knows nothing of why. The process may be stopped or running, and may
// unload libraries meanwhile: what is mapped where is compared before anything is written.
package text
