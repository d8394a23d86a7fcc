package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
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

// build builds callreel, the guest's init and the tests of packages for arm64.
func (c *config) build(ctx context.Context, dir string, patterns []string) (*built, error) {
	b := &built{init: filepath.Join(dir, "init")}
	callreel := filepath.Join(dir, "callreel")
	if err := c.goTool(ctx, "build", "-o", b.init, "./internal/guest/init"); err != nil {
		return nil, err
	}
	if err := c.goTool(ctx, "build", "-trimpath", "-o", callreel, "./cmd/callreel"); err != nil {
		return nil, err
	}
	b.files = append(b.files, callreel)
	env := []string{"CALLREEL=" + callreel}
	if c.command != "" {
		b.jobs = append(b.jobs, guest.Job{
			Name: "sh", Folder: c.tree, Args: []string{"/bin/sh", "-c", "PATH=$PATH:" + dir + "\n" + c.command}, Env: env, Timeout: c.machine.Limit,
		})
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
		if err := c.goTool(ctx, "test", "-c", "-o", program, path); err != nil {
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
		b.jobs = append(b.jobs, guest.Job{Name: path, Folder: folder, Args: args, Env: env, Timeout: c.each + time.Minute})
	}
	return nil
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
