package crash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
	"github.com/callreel/callreel/unwind"
)

// files finds the files of a report's images.
type files struct {
	Options
	report *Report
	dSYMs  []string // files with debug information in the bundles of DebugDirs; nil before it is asked
}

// look looks for an image's file on this machine: at its path, and in the debug folders.
func (f *files) look(im *Image) {
	if im.opened {
		return
	}
	im.opened = true
	if im.ID == "" && !im.byPath {
		im.Why = errNoID.Error()
		return
	}
	var errs []error
	for _, path := range f.paths(im) {
		file, err := f.open(im, path)
		if err == nil {
			f.take(im, file, path)
			return
		}
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	switch {
	case len(errs) > 0:
		im.Why = strings.TrimPrefix(errs[0].Error(), "object: ")
	default:
		im.Why = "no file with this ID is at its path or in the debug folders"
	}
}

// paths lists where an image's file may be.
func (f *files) paths(im *Image) []string {
	var out []string
	if strings.HasPrefix(im.Path, "/") && filepath.IsAbs(im.Path) {
		out = append(out, im.Path)
	}
	name := im.Name()
	if im.Path == name && name != "" && f.report.OS == "linux" { // Crashpad knows libraries by their names alone
		for _, dir := range f.libraryDirs() {
			out = append(out, filepath.Join(dir, name))
		}
	}
	for _, dir := range f.DebugDirs {
		if len(im.ID) > 2 && strings.Trim(im.ID, "0123456789abcdef") == "" {
			out = append(out, filepath.Join(dir, ".build-id", im.ID[:2], im.ID[2:]))
		}
		if name != "" && name != "." && name != ".." {
			out = append(out, filepath.Join(dir, name))
			if strings.HasPrefix(im.Path, "/") { // as a sysroot has it
				out = append(out, filepath.Join(dir, filepath.FromSlash(filepath.Clean(im.Path))))
			}
		}
	}
	return out
}

// libraryDirs are where libraries of the report's architecture are on this machine, if any: beside
// the program, and in the system's folders.
func (f *files) libraryDirs() []string {
	var dirs []string
	if p := f.report.Process.Path; filepath.IsAbs(p) {
		dirs = append(dirs, filepath.Dir(p))
	}
	triple := map[string]string{"amd64": "x86_64-linux-gnu", "386": "i386-linux-gnu", "arm64": "aarch64-linux-gnu"}[f.report.Arch]
	return append(dirs, "/lib/"+triple, "/usr/lib/"+triple, "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")
}

// Name is what people call the image: the base name of its file, else its ID.
func (i *Image) Name() string {
	if i.Path != "" {
		return i.Path[strings.LastIndexAny(i.Path, `/\`)+1:]
	}
	return i.ID
}

// open opens a file if it is the image.
func (f *files) open(im *Image, path string) (*object.Image, error) {
	o := object.Opener{Memory: f.Memory}
	switch {
	case im.ID == "":
		return o.OpenArch(path, im.Arch)
	case !im.prefix:
		return o.OpenID(path, im.ID)
	}
	file, err := o.Open(path)
	if err != nil {
		return nil, err
	}
	// A build ID of fewer than 16 bytes is filled up with zeros.
	have := file.ID()
	if have != "" && (strings.HasPrefix(have, im.ID) || strings.TrimRight(im.ID, "0") == strings.TrimRight(have, "0")) {
		return file, nil
	}
	return nil, errors.Join(&object.IDError{Path: path, Got: []string{have}, Want: im.ID}, file.Close())
}

// take makes a file that of an image.
func (f *files) take(im *Image, file *object.Image, path string) {
	if f.report.arch != nil && unwind.ArchOf(file.Arch) != f.report.arch {
		im.Why = fmt.Sprintf("%s is of another architecture: %v", path, file.Arch)
		_ = file.Close() // only looked at
		return
	}
	if id := file.ID(); id != "" {
		im.ID, im.prefix = id, false
	}
	im.file, im.File, im.Found, im.Why = file, path, true, ""
	im.slide = im.Load - file.BaseAddr()
	if im.offset != 0 {
		for _, s := range file.Segments() {
			if slide, ok := s.Slide(im.Load, im.offset, im.page); ok && s.Type == object.SegmentLoad {
				im.slide = slide
				break
			}
		}
	}
	im.unwind = unwind.NewFileImage(file, im.slide)
}

// fetch asks the network for an image that a stack needs.
func (f *files) fetch(ctx context.Context, im *Image) {
	if im.asked || im.file != nil || f.Fetcher == nil || im.ID == "" || im.prefix || f.report.OS == "windows" {
		return
	}
	im.asked = true
	path, err := f.Fetcher.Fetch(ctx, im.ID, symbols.FetchExecutable)
	if err == nil {
		var file *object.Image
		if file, err = f.open(im, path); err == nil {
			f.take(im, file, path)
			return
		}
	}
	im.Why = err.Error()
}

// maxDSYMs bounds the bundles that are looked into.
const maxDSYMs = 1024

// dSYM returns the file of a dSYM bundle in the debug folders that has an image's UUID, "" when
// there is none. That of the same name is tried first.
func (f *files) dSYM(im *Image) string {
	if f.dSYMs == nil {
		f.dSYMs = []string{}
		for _, dir := range f.DebugDirs {
			for _, pattern := range []string{"*.dSYM/Contents/Resources/DWARF/*", "Contents/Resources/DWARF/*"} {
				found, _ := filepath.Glob(filepath.Join(escapeGlob(dir), filepath.FromSlash(pattern))) // the pattern is a good one
				f.dSYMs = append(f.dSYMs, found[:min(len(found), maxDSYMs)]...)
			}
		}
	}
	for _, same := range [...]bool{true, false} {
		for _, path := range f.dSYMs {
			if (filepath.Base(path) == im.Name()) != same {
				continue
			}
			if file, err := (object.Opener{Memory: f.Memory}).OpenID(path, im.ID); err == nil {
				_ = file.Close() // only looked at
				return path
			}
		}
	}
	return ""
}

func escapeGlob(path string) string {
	if filepath.Separator == '\\' {
		return path
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
