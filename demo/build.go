package demo

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed server.c load.c
var sources embed.FS

// ErrNoCompiler: there is no C compiler on this machine, or it lacks the C library's headers.
var ErrNoCompiler = errors.New("no working C compiler")

// Names of what Build makes in its folder.
const (
	Server = "server"
	Load   = "load"
)

// Files are the names of all that Build makes.
func Files() []string { return []string{Server + ".c", Load + ".c", Server, Load} }

// Build writes the sources into the folder dir, which must exist, and compiles them there with the machine's compiler:
// CC of the environment, or cc, gcc or clang. What is there is replaced. It returns the command line that made the
// server, and ErrNoCompiler if there is no compiler or it fails.
func Build(ctx context.Context, dir string) (commandLine string, err error) {
	cc, err := compiler()
	if err != nil {
		return "", err
	}
	for _, name := range []string{Load, Server} {
		text, err := sources.ReadFile(name + ".c")
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+".c"), text, 0o644)
		}
		if err != nil {
			return "", fmt.Errorf("demo: writing its source: %w", err)
		}
		args := append(cc[1:len(cc):len(cc)], "-O2", "-g", "-pthread", "-o", name, name+".c")
		cmd := exec.CommandContext(ctx, cc[0], args...)
		cmd.Dir = dir
		if said, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("demo: %w: %s %s: %w; it needs the C library's headers, Debian's libc6-dev\n%s",
				ErrNoCompiler, cc[0], strings.Join(args, " "), err, said)
		}
		commandLine = strings.Join(append(cc[:len(cc):len(cc)], args...), " ")
	}
	return commandLine, nil
}

// compiler finds the C compiler: its name, and arguments that CC may have for it.
func compiler() ([]string, error) {
	names := [][]string{{"cc"}, {"gcc"}, {"clang"}}
	if own := strings.Fields(os.Getenv("CC")); len(own) > 0 {
		names = [][]string{own}
	}
	for _, name := range names {
		if _, err := exec.LookPath(name[0]); err == nil {
			return name, nil
		}
	}
	if len(names) == 1 {
		return nil, fmt.Errorf("demo: %w: CC is %s, which is not on the PATH", ErrNoCompiler, names[0][0])
	}
	return nil, fmt.Errorf("demo: %w: neither cc, gcc nor clang is on the PATH; install one, such as Debian's gcc and libc6-dev, or set CC", ErrNoCompiler)
}
