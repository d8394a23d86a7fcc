//go:build !linux

package programs

import "os/exec"

func asUser(*exec.Cmd, uint32, uint32) {}

func dieWithUs(*exec.Cmd) {}
