//go:build !linux

package sampler

import (
	"errors"
	"os"
	"time"
)

func openBelowRoot(int, string) (*os.File, error) { return nil, errors.ErrUnsupported }

func trustJITMap(os.FileInfo, int, time.Time) error { return errJITFile }

func startedAt(uint64) time.Time { return time.Time{} }
