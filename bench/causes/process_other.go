//go:build !linux

package causes

import (
	"errors"
	"os/exec"
)

func asUser(*exec.Cmd, uint32, uint32) {}

func dieWithUs(*exec.Cmd) {}

func makePipe(string) error { return errors.ErrUnsupported }
