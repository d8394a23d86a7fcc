// Package debugfiles finds what tells of stripped images: their debug files, on this machine and on servers, and the
// symbol maps of a store.
package debugfiles
