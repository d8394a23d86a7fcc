// Package amd64 makes the machine code of stubs for x86-64.
package amd64
