package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeSums writes SHA256SUMS for all that is in a folder, as sha256sum --check reads it.
func writeSums(folder string) error {
	names, err := os.ReadDir(folder) // sorted
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(folder, name.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), name.Name())
	}
	return os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(b.String()), 0o644)
}
