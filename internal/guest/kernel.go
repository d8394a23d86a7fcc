package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/therootcompany/xz"
)

// KernelPages are the sizes of pages, in KiB, of which there is a kernel. Debian has none with 64: that one is compiled here, from its sources.
var KernelPages = []int{4, 16, 64}

// largePagesPackage depends on the kernel with pages of 16 KiB, which Debian has in its backports only.
const (
	largePagesPackage = "linux-image-arm64-16k"
	largePagesSuite   = "debian bookworm-backports"
)

// largePages are that kernel and its modules, in a folder of dir.
func largePages(ctx context.Context, dir, mirror string, say func(string, ...any)) (kernel string, modules []string, err error) {
	made := filepath.Join(dir, "kernel-16k-"+layout)
	kernel = filepath.Join(made, "kernel")
	if _, err := os.Stat(made); err != nil {
		debs, err := archive{dir: filepath.Join(dir, "kernel-16k-apt"), mirror: mirror, suite: largePagesSuite}.fetch(ctx, []string{largePagesPackage}, say)
		if err != nil {
			return "", nil, err
		}
		if err := makeKernel(ctx, dir, made, debs); err != nil {
			return "", nil, err
		}
	}
	modules, err = modulesOf(filepath.Join(made, "modules"))
	return kernel, modules, err
}

// makeKernel takes the kernel out of its package, with the modules that are wanted, unpacked.
func makeKernel(ctx context.Context, dir, made string, debs []string) error {
	temp, err := os.MkdirTemp(dir, "make-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	root, out := filepath.Join(temp, "root"), filepath.Join(temp, "out")
	if err := errors.Join(os.Mkdir(root, 0o755), os.Mkdir(out, 0o755)); err != nil {
		return err
	}
	for _, deb := range debs {
		if image, _ := filepath.Match("linux-image-[0-9]*", filepath.Base(deb)); image {
			if err := unpackOne(ctx, deb, root); err != nil {
				return err
			}
		}
	}
	kernel, all, err := kernelIn(root)
	if err != nil {
		return err
	}
	if err := errors.Join(os.Rename(kernel, filepath.Join(out, "kernel")), os.Rename(all, filepath.Join(out, "modules"))); err != nil {
		return err
	}
	files, err := modulesOf(filepath.Join(out, "modules"))
	if err != nil {
		return err
	}
	// Nothing else is needed, and it is 400 MB.
	few := filepath.Join(temp, "few")
	if err := os.Mkdir(few, 0o755); err != nil {
		return err
	}
	for _, file := range append(files, filepath.Join(out, "modules", builtinList)) {
		if err := os.Rename(file, filepath.Join(few, filepath.Base(file))); err != nil {
			return err
		}
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(out, "modules")), os.Rename(few, filepath.Join(out, "modules"))); err != nil {
		return err
	}
	return os.Rename(out, made)
}

// kernelIn finds the one kernel below root, and the folder of its modules.
func kernelIn(root string) (kernel, modules string, err error) {
	kernels, err := filepath.Glob(filepath.Join(root, "boot", "vmlinuz-*"))
	if err != nil || len(kernels) != 1 {
		return "", "", errors.Join(err, fmt.Errorf("guest: %d kernels in Debian's packages", len(kernels)))
	}
	var all []string
	for _, lib := range []string{"usr/lib/modules", "lib/modules"} { // the latter where it isn't a link into usr
		if all, err = filepath.Glob(filepath.Join(root, lib, "*")); err != nil || len(all) > 0 {
			break
		}
	}
	if err != nil || len(all) != 1 {
		return "", "", errors.Join(err, fmt.Errorf("guest: modules of %d kernels in Debian's packages", len(all)))
	}
	return kernels[0], all[0], nil
}

// maxModule bounds a module, in bytes.
const maxModule = 64 << 20

// unpackModule replaces a module that is packed with xz by what is in it, and returns its file.
func unpackModule(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	r, err := xz.NewReader(f, xz.DefaultDictMax)
	if err != nil {
		return "", fmt.Errorf("guest: module %s: %w", file, err)
	}
	data, err := io.ReadAll(io.LimitReader(r, maxModule))
	if err != nil {
		return "", fmt.Errorf("guest: module %s: %w", file, err)
	}
	plain := file[:len(file)-len(packedSuffix)]
	if err := os.WriteFile(plain, data, 0o644); err != nil {
		return "", err
	}
	return plain, os.Remove(file)
}
