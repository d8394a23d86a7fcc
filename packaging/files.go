package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// file is one that is installed.
type file struct {
	path string // below /usr or another prefix, with slashes
	mode fs.FileMode
	data []byte
}

const (
	docs    = "share/doc/callreel"
	zshHere = "share/zsh/site-functions" // where zsh looks everywhere but on Debian
	zshDeb  = "share/zsh/vendor-completions"
)

// writeCommon makes the files that are the same for each processor: manual pages, completions, documents.
func (r *release) writeCommon(ctx context.Context) error {
	// A program for this machine writes them, from its own tree of verbs.
	program, pages := filepath.Join(r.work, "callreel-man"), filepath.Join(r.work, "man")
	if err := r.build(ctx, program, "", "", "-tags", "man"); err != nil {
		return err
	}
	if err := os.Mkdir(pages, 0o755); err != nil {
		return err
	}
	if err := finish(r.command(ctx, program, "man", pages)); err != nil {
		return err
	}
	names, err := os.ReadDir(pages)
	if err != nil {
		return err
	}
	for _, name := range names {
		page, err := os.ReadFile(filepath.Join(pages, name.Name()))
		if err != nil {
			return err
		}
		r.common = append(r.common, file{"share/man/man1/" + name.Name() + ".gz", 0o644, compress(page)})
	}
	for shell, at := range map[string]string{
		"bash": "share/bash-completion/completions/callreel",
		"zsh":  zshHere + "/_callreel",
		"fish": "share/fish/vendor_completions.d/callreel.fish",
	} {
		script, err := r.command(ctx, program, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("completion %s: %w", shell, err)
		}
		r.common = append(r.common, file{at, 0o644, script})
	}
	return r.addDocuments()
}

// addDocuments adds the pages at the root, and the folder docs that they lead to.
func (r *release) addDocuments() error {
	for _, name := range []string{"README.md", "SECURITY.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(r.root, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		r.common = append(r.common, file{path.Join(docs, name), 0o644, data})
	}
	tree := os.DirFS(r.root)
	return fs.WalkDir(tree, "docs", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !slices.Contains([]string{".md", ".png", ".svg"}, path.Ext(name)) {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		r.common = append(r.common, file{path.Join(docs, name), 0o644, data})
		return err
	})
}

// compress is gzip -9n: neither a name nor a time is in it.
func compress(data []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // there is such a level
	_, _ = w.Write(data)                                  // a bytes.Buffer takes every write
	_ = w.Close()
	return b.Bytes()
}

// tarball writes the files with a folder around them that /usr/local could be.
func (r *release) tarball(name, processor string, files []file) error {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	top := fmt.Sprintf("callreel-%s-linux-%s/", r.version, processor)
	header := tar.Header{Uname: "root", Gname: "root", ModTime: r.date, Format: tar.FormatUSTAR}
	folders := map[string]bool{".": true}
	var add func(folder string) error
	add = func(folder string) error {
		if folders[folder] {
			return nil
		}
		folders[folder] = true
		if err := add(path.Dir(folder)); err != nil {
			return err
		}
		h := header
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, folder+"/", 0o755
		return w.WriteHeader(&h)
	}
	for _, f := range sorted(files) {
		h := header
		h.Typeflag, h.Name, h.Mode, h.Size = tar.TypeReg, top+f.path, int64(f.mode), int64(len(f.data))
		if err := add(path.Dir(h.Name)); err != nil {
			return err
		}
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(name, compress(b.Bytes()), 0o644)
}

func sorted(files []file) []file {
	return slices.SortedFunc(slices.Values(files), func(a, b file) int { return cmp.Compare(a.path, b.path) })
}

// stage writes files below a new folder, as they are to be installed below /.
func (r *release) stage(dir string, files []file) error {
	for _, f := range files {
		at := filepath.Join(dir, "usr", filepath.FromSlash(f.path))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := errors.Join(os.WriteFile(at, f.data, f.mode), os.Chmod(at, f.mode)); err != nil {
			return err
		}
	}
	// Whatever the umask is.
	return filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(at, 0o755)
	})
}

// pack lets nfpm write a package, of its own kind's places.
func (r *release) pack(ctx context.Context, packager, processor string, files []file) error {
	if packager == "deb" {
		files = slices.Clone(files)
		for i, f := range files {
			if rest, found := strings.CutPrefix(f.path, zshHere); found {
				files[i].path = zshDeb + rest
			}
		}
		files = append(files, r.debian()...)
	}
	stage := filepath.Join(r.work, packager+"-"+processor)
	if err := r.stage(stage, files); err != nil {
		return err
	}
	cmd := r.command(ctx, "go", "-C", filepath.Join(r.root, "packaging", "nfpm"), "tool", "nfpm", "package",
		"--config", filepath.Join(r.root, "packaging", "nfpm.yaml"), "--packager", packager, "--target", r.out)
	cmd.Env = append(cmd.Env, "CGO_ENABLED=0", "GOWORK=off", "PACKAGE_VERSION="+r.version, "PACKAGE_ARCH="+processor, "PACKAGE_FILES="+stage)
	return finish(cmd)
}
