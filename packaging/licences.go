package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// licences are those of the modules in the program and of Go, which ask for being handed on with it.
func (r *release) licences(ctx context.Context, binary string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "callreel contains Go's library and the modules below. These are their licences.\n")
	goroot, err := r.command(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	folders := []string{strings.TrimSpace(string(goroot))}
	names := []string{"Go " + info.GoVersion}
	for _, m := range info.Deps {
		dir, err := r.command(ctx, "go", "list", "-m", "-f", "{{.Dir}}", m.Path).Output()
		if err != nil {
			return nil, fmt.Errorf("go list %s: %w", m.Path, err)
		}
		folders, names = append(folders, strings.TrimSpace(string(dir))), append(names, m.Path+" "+m.Version)
	}
	for i, folder := range folders {
		texts, err := licenceTexts(folder)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", names[i], err)
		}
		fmt.Fprintf(&b, "\n\n==== %s\n\n%s\n", names[i], texts)
	}
	return b.Bytes(), nil
}

// licenceTexts are the files of a folder that by their names are about its licence.
func licenceTexts(folder string) (string, error) {
	there, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, d := range there {
		stem, _, _ := strings.Cut(strings.ToUpper(d.Name()), ".")
		if !d.Type().IsRegular() || !slices.Contains([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"}, stem) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, d.Name()))
		if err != nil {
			return "", err
		}
		texts = append(texts, strings.TrimSpace(string(text)))
	}
	if len(texts) == 0 {
		return "", fmt.Errorf("%s has no licence", folder)
	}
	return strings.Join(texts, "\n\n"), nil
}
