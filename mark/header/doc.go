// Package header has callreel.h, with which C and C++ programs get markers without linking anything.
package header
