package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/callreel/callreel/internal/guest"
)

// A built is what goes into the guest.
type built struct {
	init  string
	jobs  []guest.Job
	files []string
}

// stripped programs are linked and unpacked sooner. go test makes such ones of its own.
const stripped = "-ldflags=-s -w"

// build builds callreel, the guest's init and the tests of packages for arm64.
func (c *config) build(ctx context.Context, dir string, patterns []string) (*built, error) {
	b := &built{init: filepath.Join(dir, "init")}
	callreel := filepath.Join(dir, "callreel")
	if err := c.goTool(ctx, "build", "-o", b.init, "./internal/guest/init"); err != nil {
		return nil, err
	}
	if err := c.goTool(ctx, "build", stripped, "-o", callreel, "./cmd/callreel"); err != nil {
		return nil, err
	}
	b.files = append(b.files, callreel)
	env := []string{"CALLREEL=" + callreel, guest.EmulatedVar + "=1"}
	if ci := os.Getenv("CI"); ci != "" { // there, too, a test may not skip because a program is missing
		env = append(env, "CI="+ci)
	}
	if c.command != "" {
		b.jobs = append(b.jobs, guest.Job{
			Name: "sh", Folder: c.tree, Args: []string{"/bin/sh", "-c", "PATH=$PATH:" + dir + "\n" + c.command}, Env: env, Timeout: c.machine.Limit,
		})
	}
	if c.soak > 0 {
		if err := c.buildSoak(ctx, b, dir); err != nil {
			return nil, err
		}
	}
	if len(patterns) > 0 {
		if err := c.buildTests(ctx, b, dir, patterns, env); err != nil {
			return nil, err
		}
	}
	if len(b.jobs) == 0 {
		return nil, errors.New("there is nothing to run: name packages with tests")
	}
	tree, err := c.sources(ctx)
	b.files = append(b.files, tree...)
	return b, err
}

// besides is what programs of a soak take to be compiled, and the last of them to end, in the emulated machine.
const besides = 10 * time.Minute

// buildSoak builds bench and the program that it couldn't build in the guest, which has no Go.
func (c *config) buildSoak(ctx context.Context, b *built, dir string) error {
	bench, made := filepath.Join(dir, "bench"), filepath.Join(dir, "made")
	if err := os.Mkdir(made, 0o755); err != nil {
		return err
	}
	goWork := filepath.Join(made, "go-work")
	if err := c.goTool(ctx, "build", "-o", bench, "./bench"); err != nil {
		return err
	}
	if err := c.goTool(ctx, "build", "-o", goWork, "./bench/programs/source/gowork"); err != nil {
		return err
	}
	b.files = append(b.files, bench, goWork)
	b.jobs = append(b.jobs, guest.Job{
		Name: "soak", Folder: c.tree, Timeout: c.soak + besides,
		Args: []string{bench, "-soak", c.soak.String(), "-callreel", filepath.Join(dir, "callreel"), "-made", made},
	})
	return nil
}

func (c *config) buildTests(ctx context.Context, b *built, dir string, patterns, env []string) error {
	list, err := output(ctx, "env", append([]string{"GOOS=linux", "GOARCH=arm64", "go", "list", "-f",
		"{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}} {{.ImportPath}}{{end}}"}, patterns...)...)
	if err != nil {
		return err
	}
	for i, line := range list {
		folder, path, ok := strings.Cut(line, " ")
		if !ok {
			continue
		}
		program := filepath.Join(dir, fmt.Sprintf("%03d.test", i))
		if err := c.goTool(ctx, "test", "-c", "-vet=off", stripped, "-o", program, path); err != nil {
			return err
		}
		args := []string{program, "-test.timeout=" + c.each.String(), fmt.Sprintf("-test.short=%t", c.short)}
		if c.verbose {
			args = append(args, "-test.v")
		}
		if c.tests != "" {
			args = append(args, "-test.run="+c.tests)
		}
		if c.skip != "" {
			args = append(args, "-test.skip="+c.skip)
		}
		b.files = append(b.files, program)
		env := env
		if programs := goProgramsOf(path, c.tests); len(programs) > 0 {
			more, err := c.buildGoPrograms(ctx, b, dir, programs)
			if err != nil {
				return err
			}
			env = append(slices.Clone(env), more)
		}
		b.jobs = append(b.jobs, guest.Job{Name: path, Folder: folder, Args: args, Env: env, Timeout: c.each + time.Minute})
	}
	return nil
}

// goPrograms are the programs of testdata/targets in Go that tests of a package record, with the flags of go build, and what the names of these tests
// have in common.
var goPrograms = []struct {
	pkg, tests string
	programs   [][]string
}{
	{"/recorder", "Go", [][]string{{"goroutines"}, {"goroutines", "-ldflags=-s -w"}, {"goroutines", "-buildmode=pie"}}},
	{"/recorder", "GDB", [][]string{{"arguments"}}},
	{"/recorder", "GoArguments", [][]string{{"arguments"}}},
	{"/recorder", "GoMarkers", [][]string{{"gomarks"}}},
	{"/recorder", "GoProgramsKnow", [][]string{{"gomarks", "-ldflags=-s -w"}}},
	{"/mark", "Go", [][]string{{"gopauses"}}},
	{"/mark", "WhatIsRecorded", [][]string{{"gomarks"}, {"gomarks", "-buildmode=pie", "-ldflags=-s -w"}, {"gomarks", "-gcflags=all=-N -l"}}},
}

// goProgramsOf are those that a package's tests of these names need; "" is for all.
func goProgramsOf(path, tests string) (list [][]string) {
	for _, p := range goPrograms {
		if strings.HasSuffix(path, p.pkg) && (tests == "" || strings.Contains(tests, p.tests)) {
			list = append(list, p.programs...)
		}
	}
	return list
}

// buildGoPrograms builds them, and returns what tells the tests.
func (c *config) buildGoPrograms(ctx context.Context, b *built, dir string, programs [][]string) (env string, err error) {
	for _, p := range programs {
		target, flags := p[0], p[1:]
		program := guest.GoProgram(dir, target, flags)
		if err := c.goTool(ctx, slices.Concat([]string{"build"}, flags, []string{"-o", program, "./testdata/targets/" + target})...); err != nil {
			return "", err
		}
		if !slices.Contains(b.files, program) {
			b.files = append(b.files, program)
		}
	}
	return guest.GoProgramsVar + "=" + dir, nil
}

func (c *config) goTool(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.tree, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// sources are the files of the tree: tests read what is beside them.
func (c *config) sources(ctx context.Context) ([]string, error) {
	list, err := output(ctx, "git", "-C", c.tree, "ls-files", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	var files []string
	for _, name := range list {
		file := filepath.Join(c.tree, name)
		if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
			continue // it was removed
		}
		files = append(files, file)
	}
	return files, nil
}
