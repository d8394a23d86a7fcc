//go:build !linux

package guest

import "os/exec"

// endWithUs does nothing: there is no such thing.
func endWithUs(*exec.Cmd) {}
