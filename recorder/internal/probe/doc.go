// Package probe decides how each function of an image can be probed, or why it can't be (plan), and makes the machine
// code that does it (compile).
package probe
