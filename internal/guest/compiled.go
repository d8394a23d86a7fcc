package guest

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// kernelSources is Debian's package of the sources of its release's kernel.
const kernelSources = "linux-source-6.1"

// kernelConfig is what of these is wanted.
//
//go:embed kernel-64k.config
var kernelConfig string

// compiledKernel is a kernel with pages of 64 KiB, in a folder of dir. It has no modules.
func compiledKernel(ctx context.Context, dir, mirror string, say func(string, ...any)) (string, error) {
	kernel := filepath.Join(dir, "kernel-64k-"+keyOf(kernelSources, kernelConfig))
	if _, err := os.Stat(kernel); err == nil {
		return kernel, nil
	}
	for _, program := range []string{"flex", "bison", "bc", "make", "aarch64-linux-gnu-gcc", "xz"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("guest: a kernel with pages of 64 KiB is compiled here, which takes make, flex, bison, bc, xz-utils and gcc-aarch64-linux-gnu: %w", err)
		}
	}
	debs, err := archive{dir: filepath.Join(dir, "kernel-64k-apt"), mirror: mirror}.fetch(ctx, []string{kernelSources}, say)
	if err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(dir, "make-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	say("compiling a kernel with pages of 64 KiB")
	tree, err := unpackSources(ctx, debs, temp)
	if err != nil {
		return "", err
	}
	image, err := compile(ctx, tree)
	if err != nil {
		return "", err
	}
	return kernel, os.Rename(image, kernel)
}

// unpackSources returns the folder of the kernel's sources, below dir.
func unpackSources(ctx context.Context, debs []string, dir string) (string, error) {
	for _, deb := range debs {
		if is, _ := filepath.Match(kernelSources+"_*", filepath.Base(deb)); is {
			if err := unpackOne(ctx, deb, dir); err != nil {
				return "", err
			}
		}
	}
	packed := filepath.Join(dir, "usr", "src", kernelSources+".tar.xz")
	return filepath.Join(dir, kernelSources), quiet(exec.CommandContext(ctx, "tar", "-C", dir, "-xf", packed), "unpack "+packed)
}

// compile makes the kernel of the sources in a folder, and returns its file.
func compile(ctx context.Context, tree string) (string, error) {
	makes := func(args ...string) error {
		cmd := exec.CommandContext(ctx, "make", append([]string{"-s", "-C", tree, "ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-"}, args...)...)
		return quiet(cmd, "make "+strings.Join(args, " "))
	}
	config := filepath.Join(tree, ".config")
	if err := makes("allnoconfig"); err != nil {
		return "", err
	}
	least, err := os.ReadFile(config)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(config, append(least, kernelConfig...), 0o644); err != nil { // of two lines about the same the last is taken
		return "", err
	}
	if err := makes("olddefconfig"); err != nil {
		return "", err
	}
	made, err := os.ReadFile(config)
	if err != nil {
		return "", err
	}
	if err := hasAll(string(made), kernelConfig); err != nil {
		return "", err
	}
	return filepath.Join(tree, "arch", "arm64", "boot", "Image"), makes("-j"+strconv.Itoa(runtime.NumCPU()), "Image")
}

// hasAll says what a kernel's configuration lacks of what was wanted.
func hasAll(config, wanted string) error {
	have := map[string]bool{}
	for line := range strings.Lines(config) {
		have[strings.TrimSpace(line)] = true
	}
	var lacks []string
	for line := range strings.Lines(wanted) {
		if line = strings.TrimSpace(line); strings.HasSuffix(line, "=y") && !have[line] {
			lacks = append(lacks, line)
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("guest: this kernel can't be made with %s", strings.Join(lacks, ", "))
	}
	return nil
}
