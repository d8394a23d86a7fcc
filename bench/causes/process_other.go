//go:build !linux

package causes

import "os/exec"

func asUser(*exec.Cmd, uint32, uint32) {}

func dieWithUs(*exec.Cmd) {}
