package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// debianPackage returns the folder with a Debian package's files. It is downloaded and unpacked
// once, into the user's cache; nothing is installed.
func debianPackage(ctx context.Context, name string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "callreel-bench", name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	fmt.Fprintf(os.Stderr, "bench: downloading %s into %s …\n", name, filepath.Dir(dir))
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), name+"-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp) // what is left of a failure; renamed otherwise
	if err := runIn(ctx, temp, "apt-get", "download", "-q", name); err != nil {
		return "", err
	}
	debs, err := filepath.Glob(filepath.Join(temp, "*.deb"))
	if err != nil || len(debs) != 1 {
		return "", fmt.Errorf("apt-get download %s: %d packages (%w)", name, len(debs), err)
	}
	if err := runIn(ctx, temp, "dpkg", "-x", debs[0], "files"); err != nil {
		return "", err
	}
	return dir, os.Rename(filepath.Join(temp, "files"), dir)
}

func runIn(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, args[0], err, strings.TrimSpace(string(said)))
	}
	return nil
}

// kernelPackage is the newest one of Debian's kernel with DWARF.
func kernelPackage(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "apt-cache", "search", "--names-only", `^linux-image-[0-9.]+-[0-9]+-amd64-dbg$`).Output()
	if err != nil {
		return "", fmt.Errorf("apt-cache search: %w", err)
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	if len(names) == 0 {
		return "", errors.New("apt-cache knows no linux-image-*-amd64-dbg")
	}
	slices.SortFunc(names, byNumbers)
	return debianPackage(ctx, names[len(names)-1])
}

var digits = regexp.MustCompile(`[0-9]+`)

// byNumbers compares names by the numbers in them: versions.
func byNumbers(a, b string) int {
	numbers := func(s string) (list []int) {
		for _, text := range digits.FindAllString(s, -1) {
			n, _ := strconv.Atoi(text) // digits only
			list = append(list, n)
		}
		return list
	}
	return slices.Compare(numbers(a), numbers(b))
}

// oneFile is the only file that a pattern below a folder matches.
func oneFile(dir, pattern string) (string, error) {
	list, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(list) != 1 {
		return "", fmt.Errorf("%s: %d files %s", dir, len(list), pattern)
	}
	return list[0], nil
}

func vmlinux(ctx context.Context, _ config) (string, error) {
	dir, err := kernelPackage(ctx)
	if err != nil {
		return "", err
	}
	return oneFile(dir, "usr/lib/debug/boot/vmlinux-*")
}

// kernelModules lists the modules of the kernel's package, the largest first.
func kernelModules(ctx context.Context) ([]string, error) {
	dir, err := kernelPackage(ctx)
	if err != nil {
		return nil, err
	}
	type module struct {
		path string
		size int64
	}
	var list []module
	err = filepath.WalkDir(filepath.Join(dir, "usr/lib/debug/lib/modules"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".ko") {
			return err
		}
		info, err := d.Info()
		if err == nil {
			list = append(list, module{path, info.Size()})
		}
		return err
	})
	slices.SortFunc(list, func(a, b module) int { return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.path, b.path)) })
	var paths []string
	for _, m := range list {
		paths = append(paths, m.path)
	}
	return paths, err
}

func kernelModule(ctx context.Context, _ config) (string, error) {
	list, err := kernelModules(ctx)
	if err != nil || len(list) == 0 {
		return "", errors.Join(errors.New("no kernel modules"), err)
	}
	return list[0], nil
}

// linkedModules links the 700 largest modules into one image. What they refer to is not
// there, which does no harm: only the DWARF counts.
func linkedModules(ctx context.Context, c config) (string, error) {
	list, err := kernelModules(ctx)
	if err != nil {
		return "", err
	}
	const modules = 700
	if len(list) < modules {
		return "", fmt.Errorf("%d kernel modules, want %d", len(list), modules)
	}
	names := filepath.Join(c.dir, "modules.list")
	if err := os.WriteFile(names, []byte(strings.Join(list[:modules], "\n")), 0o600); err != nil {
		return "", err
	}
	out := filepath.Join(c.dir, "modules")
	return out, runIn(ctx, c.dir, "ld.lld-19", "--noinhibit-exec", "--allow-multiple-definition", "--unresolved-symbols=ignore-all",
		"--no-check-sections", "-e", "0", "-w", "-o", out, "@"+names)
}

// largestDebugFile is the largest of the package's files that are kept by build ID.
func largestDebugFile(ctx context.Context, name string) (string, error) {
	dir, err := debianPackage(ctx, name)
	if err != nil {
		return "", err
	}
	list, err := filepath.Glob(filepath.Join(dir, "usr/lib/debug/.build-id/*/*.debug"))
	if err != nil || len(list) == 0 {
		return "", fmt.Errorf("%s: no debug files (%w)", name, err)
	}
	return slices.MaxFunc(list, func(a, b string) int { return cmp.Compare(bytesOf(a), bytesOf(b)) }), nil
}

func cephOSD(ctx context.Context, _ config) (string, error) {
	return largestDebugFile(ctx, "ceph-osd-dbg")
}

func libc(ctx context.Context, _ config) (string, error) { return largestDebugFile(ctx, "libc6-dbg") }

// clangProgram is C++ whose headers are most of the code.
func clangProgram(ctx context.Context, c config) (string, error) {
	out := filepath.Join(c.dir, "headers")
	return out, runIn(ctx, c.dir, "clang-19", "-x", "c++", "-std=c++17", "-O2", "-g", "-w", "-o", out, filepath.Join(c.source, "headers.cc"), "-lstdc++", "-lm")
}

// goProgram is callreel itself, with the DWARF that a release leaves out.
func goProgram(ctx context.Context, c config) (string, error) {
	out := filepath.Join(c.dir, "callreel-dwarf")
	return out, runIn(ctx, ".", "go", "build", "-o", out, "./cmd/callreel")
}

// machO is a library for another system, with as many inlined calls as its source makes.
func machO(ctx context.Context, c config) (string, error) {
	source := filepath.Join(c.dir, "many.c")
	if err := os.WriteFile(source, []byte(manyFunctions(2000)), 0o600); err != nil {
		return "", err
	}
	for _, command := range [][]string{
		{"clang-19", "-target", "arm64-apple-macos11", "-g", "-O1", "-ffreestanding", "-c", "many.c"},
		{"ld64.lld-19", "-arch", "arm64", "-platform_version", "macos", "11.0", "11.0", "-dylib", "-undefined", "dynamic_lookup",
			"-install_name", "@rpath/libmany.dylib", "-o", "libmany.dylib", "many.o"},
		{"dsymutil-19", "libmany.dylib"},
	} {
		if err := runIn(ctx, c.dir, command[0], command[1:]...); err != nil {
			return "", err
		}
	}
	return filepath.Join(c.dir, "libmany.dylib.dSYM/Contents/Resources/DWARF/libmany.dylib"), nil
}

// manyFunctions is C in which every function inlines two others, three deep.
func manyFunctions(n int) string {
	var b strings.Builder
	b.WriteString("extern int sink;\n#define inlined static inline __attribute__((always_inline))\n")
	for k := range n {
		fmt.Fprintf(&b, "inlined int low%d(int x)\n{\n\tsink += x * %d;\n\treturn x ^ %d;\n}\n", k, k+3, k)
		fmt.Fprintf(&b, "inlined int mid%d(int x)\n{\n\tif (x > %d)\n\t\treturn low%d(x);\n\treturn low%d(x + 1);\n}\n", k, k, k, k/2)
		fmt.Fprintf(&b, "int top%d(int x)\n{\n\tint y = mid%d(x);\n\ty += mid%d(y);\n\treturn y;\n}\n", k, k, k/3)
	}
	return b.String()
}
