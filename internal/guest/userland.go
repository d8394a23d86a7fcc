package guest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// merged are the folders that are links into usr.
var merged = []string{"bin", "lib", "sbin"}

// unpack lays the packages' files out below root. No script of theirs is run, so what those would have made is made here.
func unpack(ctx context.Context, debs []string, root string) error {
	for _, name := range merged {
		if err := os.MkdirAll(filepath.Join(root, "usr", name), 0o755); err != nil {
			return err
		}
		if err := os.Symlink("usr/"+name, filepath.Join(root, name)); err != nil {
			return err
		}
	}
	for _, deb := range debs {
		if err := unpackOne(ctx, deb, root); err != nil {
			return err
		}
	}
	return settle(root)
}

func unpackOne(ctx context.Context, deb, root string) error {
	from := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	// The folders above are links, which tar would replace by folders.
	to := exec.CommandContext(ctx, "tar", "-x", "--keep-directory-symlink", "--numeric-owner", "-C", root,
		"--exclude=./usr/share/doc", "--exclude=./usr/share/man", "--exclude=./usr/share/locale", "--exclude=./usr/share/info")
	pipe, err := from.StdoutPipe()
	if err != nil {
		return err
	}
	to.Stdin = pipe
	var said strings.Builder
	from.Stderr, to.Stderr = &said, &said
	if err := from.Start(); err != nil {
		return fmt.Errorf("guest: unpack %s: %w", deb, err)
	}
	err = errors.Join(to.Run(), from.Wait())
	if err != nil {
		return fmt.Errorf("guest: unpack %s: %w\n%s", deb, err, said.String())
	}
	return nil
}

// settle does what packages' scripts would have done.
func settle(root string) error {
	for from, to := range map[string]string{"usr/share/base-passwd/passwd.master": "etc/passwd", "usr/share/base-passwd/group.master": "etc/group"} {
		text, err := os.ReadFile(filepath.Join(root, from))
		if err == nil {
			err = os.WriteFile(filepath.Join(root, to), text, 0o644)
		}
		if err != nil {
			return fmt.Errorf("guest: %w", err)
		}
	}
	for link, to := range map[string]string{"usr/bin/sh": "dash", "usr/bin/cc": "gcc", "usr/bin/awk": "mawk", "usr/bin/c++": "g++"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for name, text := range map[string]string{"etc/hostname": "guest\n", "etc/hosts": "127.0.0.1 localhost guest\n::1 localhost\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// makeImage makes a file system of folder, or an empty one if that is "", with room for size bytes.
func makeImage(ctx context.Context, file, folder string, size int64) error {
	args := []string{"-q", "-t", "ext4", "-F", "-m", "0", "-E", "lazy_itable_init=1"}
	if folder != "" {
		args = append(args, "-d", folder)
	}
	return quiet(exec.CommandContext(ctx, mke2fs(), append(args, file, fmt.Sprintf("%dk", size>>10))...), "mke2fs "+file)
}

// quiet runs a command, called what in the error, which has the end of what it printed.
func quiet(cmd *exec.Cmd, what string) error {
	const most = 4000
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("guest: %s: %w\n%s", what, err, said[max(0, len(said)-most):])
	}
	return nil
}

// mke2fs is in sbin, which isn't on every user's PATH.
func mke2fs() string {
	if path, err := exec.LookPath("mke2fs"); err == nil {
		return path
	}
	return "/sbin/mke2fs"
}
