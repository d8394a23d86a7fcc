//go:build !linux

package main

import (
	"context"
	"errors"
	"io"
	"time"
)

var errLinuxOnly = errors.New("programs are recorded on Linux")

func programTable(context.Context, config, io.Writer) error { return errLinuxOnly }

func runSoak(context.Context, config, time.Duration, uint64) error { return errLinuxOnly }

func soakBudget(context.Context, config, time.Duration, uint64) error { return errLinuxOnly }
