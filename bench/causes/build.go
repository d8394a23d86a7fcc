package causes

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed source
var source embed.FS

// seconds is how long a program serves if nobody ends it.
const seconds = "20"

// once makes a file that other instances use, too.
func (p *place) once(name string, make func(out string) error) (string, error) {
	out := filepath.Join(p.built, name)
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	temp := filepath.Join(p.dir, name)
	if err := make(temp); err != nil {
		return "", err
	}
	return out, os.Rename(temp, out)
}

// write puts a source, or a folder of sources, into the place and returns its path.
func (p *place) write(name string) (string, error) {
	to := filepath.Join(p.dir, name)
	entries, err := source.ReadDir("source/" + name)
	if err != nil { // a file
		data, err := source.ReadFile("source/" + name)
		if err != nil {
			return "", err
		}
		return to, os.WriteFile(to, data, 0o644)
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return "", err
	}
	for _, e := range entries {
		if _, err := p.write(name + "/" + e.Name()); err != nil {
			return "", err
		}
	}
	return to, nil
}

// makeIt runs a compiler.
func makeIt(ctx context.Context, dir, path string, args ...string) error {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", path, err, strings.TrimSpace(string(said)))
	}
	return nil
}

// compiled is a program in C or C++, made as one would make it for use, with symbols.
func compiled(file string) func(context.Context, *place) (*Instance, error) {
	return func(ctx context.Context, p *place) (*Instance, error) {
		out, err := p.compile(ctx, file)
		if err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, out, seconds, strconv.Itoa(p.seed))
		cmd.Dir = p.dir
		return serve(cmd)
	}
}

func (p *place) compile(ctx context.Context, file string) (string, error) {
	name := strings.TrimSuffix(file, filepath.Ext(file))
	return p.once(name, func(out string) error {
		path, err := p.write(file)
		if err != nil {
			return err
		}
		if _, err := p.write("server.h"); err != nil {
			return err
		}
		args := []string{"-O2", "-g", "-Wall", "-Wextra", "-pthread", "-o", out, path}
		if filepath.Ext(file) == ".cc" {
			args = append([]string{"-std=c++17"}, args...)
		}
		return makeIt(ctx, p.dir, p.found[0], args...)
	})
}

// goProgram is a static program, as Go makes them without cgo. It has all plants in Go.
func goProgram(plant string) func(context.Context, *place) (*Instance, error) {
	return func(ctx context.Context, p *place) (*Instance, error) {
		out, err := p.compileGo(ctx)
		if err != nil {
			return nil, err
		}
		return serve(exec.CommandContext(ctx, out, plant, seconds, strconv.Itoa(p.seed)))
	}
}

func (p *place) compileGo(ctx context.Context) (string, error) {
	return p.once("go-plants", func(out string) error {
		dir, err := p.write("goserver")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module goserver\n\ngo 1.25\n"), 0o644); err != nil {
			return err
		}
		return makeIt(ctx, dir, "/usr/bin/env", "CGO_ENABLED=0", "GOFLAGS=", p.found[0], "build", "-buildvcs=false", "-o", out, ".")
	})
}

// pythonProgram is the interpreter with a script.
func pythonProgram(plant string) func(context.Context, *place) (*Instance, error) {
	return func(ctx context.Context, p *place) (*Instance, error) {
		path, err := p.write("pyserver.py")
		if err != nil {
			return nil, err
		}
		return serve(exec.CommandContext(ctx, p.found[0], "-I", path, plant, seconds, strconv.Itoa(p.seed)))
	}
}

// Build compiles what the plant has to compile, so that it doesn't take time later.
func (p *Plant) Build(ctx context.Context, dir string) error {
	at, err := p.makePlace(dir, 0)
	if err != nil {
		return err
	}
	if p.build != nil {
		_, err = p.build(at, ctx)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", p.Name, err)
	}
	return errors.Join(err, os.RemoveAll(at.dir))
}

// builds is what compiles one file.
func builds(file string) func(*place, context.Context) (string, error) {
	return func(p *place, ctx context.Context) (string, error) { return p.compile(ctx, file) }
}
