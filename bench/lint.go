package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
)

// measureLint lints the system's libcrypto, whose assembly has the most intricate frames that
// are to be had. No other program does this.
func measureLint(ctx context.Context, c config) []row {
	const what, reach = "cfi lint of libcrypto.so.3", "≤ 2 s"
	path, err := systemLibrary("libcrypto.so.3")
	if err != nil {
		return []row{missing(what, reach, err)}
	}
	var cpu, wall []float64
	var result struct {
		FDEs     int   `json:"fdes"`
		Findings []any `json:"findings"`
	}
	for range c.rounds {
		begun := time.Now()
		const findings = 1 // is the exit code then
		u, stdout, _, err := usedBy(c.dir, exec.CommandContext(ctx, c.callreel, "cfi", "lint", "--json", path), findings)
		if err != nil {
			return []row{missing(what, reach, err)}
		}
		cpu, wall = append(cpu, u.CPU), append(wall, time.Since(begun).Seconds())
		if err := json.Unmarshal([]byte(stdout), &result); err != nil {
			return []row{missing(what, reach, fmt.Errorf("callreel cfi lint: %w", err))}
		}
	}
	return []row{{
		what: what, value: seconds(cpu) + " CPU", reach: reach,
		note: fmt.Sprintf("wall %s; %s, %d FDEs, %d findings", seconds(wall), fileSize(path), result.FDEs, len(result.Findings)),
	}}
}

// systemLibrary finds a library where distributions have it.
func systemLibrary(name string) (string, error) {
	for _, pattern := range []string{"/usr/lib/*-linux-gnu/", "/usr/lib64/", "/usr/lib/"} {
		if found, err := filepath.Glob(pattern + name); err == nil && len(found) > 0 {
			return found[0], nil
		}
	}
	return "", errors.New(name + " is not installed")
}
