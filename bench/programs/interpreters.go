package programs

import (
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/callreel/callreel/mark/header"
)

//go:embed source
var source embed.FS

// write puts a source into the place and returns its path.
func (p *place) write(name string) (string, error) {
	data, err := source.ReadFile("source/" + name)
	if err != nil {
		return "", err
	}
	path := filepath.Join(p.dir, filepath.Base(name))
	return path, os.WriteFile(path, data, 0o644)
}

// make runs a compiler or the like in the place.
func (p *place) make(ctx context.Context, path string, args ...string) error {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = p.dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", path, err, strings.TrimSpace(string(said)))
	}
	return nil
}

// once makes a file beside the place, unless it was made for an instance before. An instance is a few seconds long, and so is
// compiling.
func (p *place) once(name string, make func(out string) error) (string, error) {
	out := filepath.Join(filepath.Dir(p.dir), name)
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	temp := filepath.Join(p.dir, name)
	if err := make(temp); err != nil {
		return "", err
	}
	return out, os.Rename(temp, out)
}

// script is a program that the first of what is needed interprets.
func script(name string) func(context.Context, *place) (*Instance, error) {
	return func(ctx context.Context, p *place) (*Instance, error) {
		path, err := p.write(name)
		if err != nil {
			return nil, err
		}
		return converse(ctx, "go\n", p.found[0], path)
	}
}

func startPython(ctx context.Context, p *place) (*Instance, error) {
	path, err := p.write("work.py")
	if err != nil {
		return nil, err
	}
	return converse(ctx, "go\n", p.found[0], "-I", path) // not of a virtual environment
}

// compiled is a program that the first of what is needed makes.
func compiled(name, from string, flags ...string) func(context.Context, *place) (*Instance, error) {
	return func(ctx context.Context, p *place) (*Instance, error) {
		path, err := p.write(from)
		if err != nil {
			return nil, err
		}
		out, err := p.once(name, func(out string) error {
			return p.make(ctx, p.found[0], append([]string{path}, append(flags, out)...)...)
		})
		if err != nil {
			return nil, err
		}
		return converse(ctx, "go\n", out)
	}
}

// startMarks is a program that includes callreel.h.
func startMarks(ctx context.Context, p *place) (*Instance, error) {
	text, err := io.ReadAll(header.Reader())
	if err == nil {
		err = os.WriteFile(filepath.Join(p.dir, header.Name), text, 0o644)
	}
	if err != nil {
		return nil, err
	}
	return compiled("marks", "marks.c", "-O2", "-pthread", "-o")(ctx, p)
}

// startGo is a static program, as Go makes them without cgo.
func startGo(ctx context.Context, p *place) (*Instance, error) {
	path, err := p.write("gowork/work.go")
	if err != nil {
		return nil, err
	}
	out, err := p.once("go-work", func(out string) error {
		return p.make(ctx, "/usr/bin/env", "CGO_ENABLED=0", "GOFLAGS=", "GO111MODULE=off", p.found[0], "build", "-o", out, path)
	})
	if err != nil {
		return nil, err
	}
	return converse(ctx, "go\n", out)
}

func startJava(ctx context.Context, p *place) (*Instance, error) {
	path, err := p.write("Work.java")
	if err != nil {
		return nil, err
	}
	classes, err := p.once("classes", func(out string) error { return p.make(ctx, p.found[1], "-d", out, path) })
	if err != nil {
		return nil, err
	}
	return converse(ctx, "go\n", p.found[0], "-Xmx256m", "-cp", classes, "Work")
}

func startMono(ctx context.Context, p *place) (*Instance, error) {
	path, err := p.write("Work.cs")
	if err != nil {
		return nil, err
	}
	out, err := p.once("Work.exe", func(out string) error { return p.make(ctx, p.found[1], "-out:"+out, path) })
	if err != nil {
		return nil, err
	}
	return converse(ctx, "go\n", p.found[0], "-O=-aot", out)
}

// startGDB has gdb look at, and debug, a C++ program.
func startGDB(ctx context.Context, p *place) (*Instance, error) {
	path, err := p.write("throw.cc")
	if err != nil {
		return nil, err
	}
	out, err := p.once("debugged", func(out string) error {
		return p.make(ctx, p.found[1], "-O1", "-g", "-std=c++17", "-pthread", "-o", out, path)
	})
	if err != nil {
		return nil, err
	}
	commands, err := source.ReadFile("source/work.gdb")
	if err != nil {
		return nil, err
	}
	i, err := converse(ctx, string(commands), p.found[0], "-q", "-nx", "-iex", "set debuginfod enabled off", "-ex", "set confirm off", "-ex", "set width 0", "-ex", "set height 0", out)
	if err != nil {
		return nil, err
	}
	i.clean = func(line string) string {
		// Breakpoints, values and processes have other numbers each time.
		for _, varies := range []string{"reakpoint ", "process ", "LWP ", "[Thread ", "[New ", "(gdb) $"} {
			if strings.Contains(line, varies) {
				return ""
			}
		}
		return line
	}
	_, err = i.Work() // after which it knows the libraries, and answers more
	return i, err
}
