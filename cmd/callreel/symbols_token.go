package main

import (
	"fmt"
	"os"
	"strings"
)

// The variables that have tokens of symbol servers.
const (
	tokenVariable     = "CALLREEL_TOKEN"
	pushTokenVariable = "CALLREEL_PUSH_TOKEN"
)

// maxTokens bounds a file of tokens, in bytes.
const maxTokens = 64 << 10

// readTokens reads tokens from a file, one a line; without a file, from the variable.
func readTokens(path, variable string) ([]string, error) {
	text := os.Getenv(variable)
	if path != "" {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("callreel: tokens: %w", err)
		}
		if info.Size() > maxTokens {
			return nil, usageError("callreel: %s has %d bytes: want tokens, one a line", path, info.Size())
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("callreel: tokens: %w", err)
		}
		text = string(data)
		if len(strings.Fields(text)) == 0 {
			return nil, usageError("callreel: %s has no token", path)
		}
	}
	return strings.Fields(text), nil
}
