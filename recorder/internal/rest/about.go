package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// About is what a note says of an armed recording, besides its images and functions.
type About struct {
	// Version is that of notes: another's are left alone.
	Version int `json:"version"`
	// RingDev and RingInode name the ring memory, as the signed header of the recovery memory does.
	RingDev   uint64 `json:"ring_dev"`
	RingInode uint64 `json:"ring_inode"`
	// PID and Start are the process, as the recorder's PID namespace counts, which is PIDNamespace.
	PID          int    `json:"pid"`
	Start        uint64 `json:"start"`
	PIDNamespace uint64 `json:"pid_namespace"`
	// Folder is where dumps go, absolute; Mode is each dump's.
	Folder string      `json:"folder"`
	Mode   fs.FileMode `json:"mode"`
	// Began is when recording was on, in TSC ticks; Min is for how many of them a call must take to be in a dump, 0 for all.
	Began uint64 `json:"began"`
	Min   uint64 `json:"min"`
}

const (
	version = 1
	// maxAbout bounds what is read of it, in bytes; paths have 4,095 at the most.
	maxAbout = 64 << 10
)

var errAbout = errors.New("the note of its recording can't be read")

// parseAbout reads what a note says.
func parseAbout(b []byte) (About, error) {
	var a About
	if err := json.Unmarshal(b, &a); err != nil {
		return About{}, fmt.Errorf("%w: %w", errAbout, err)
	}
	switch {
	case a.Version != version:
		return About{}, fmt.Errorf("%w: it is of version %d, this callreel knows %d", errAbout, a.Version, version)
	case !filepath.IsAbs(a.Folder):
		return About{}, fmt.Errorf("%w: the folder %q is not absolute", errAbout, a.Folder)
	case a.Mode&^fs.ModePerm != 0:
		return About{}, fmt.Errorf("%w: files of mode %v", errAbout, a.Mode)
	}
	return a, nil
}
