// Package doctor finds out whether recording works on this machine or process, and what to change where it does not.
package doctor
