package needed

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/callreel/callreel/object"
)

// maxFiles bounds how many files are looked at. Large desktop programs load some hundred.
const maxFiles = 4 << 10

// Visit calls found with a program and the libraries that it needs, opened, in the order in which the dynamic loader (ld.so(8)) loads them,
// until it returns false. It goes by the files' DT_NEEDED, RPATH and RUNPATH, by LD_LIBRARY_PATH and LD_PRELOAD of the environment, and by
// the loader's cache. It is a forecast only: what is found elsewhere, as in folders for special processors, is missing. The images are
// closed when found has returned.
func Visit(program string, getenv func(string) string, found func(path string, o *object.Image) bool) {
	s := search{cache: readCache(cacheFile), libraryPath: folders(getenv("LD_LIBRARY_PATH"), ""), seen: map[string]bool{}}
	first, err := object.Open(program)
	if err != nil {
		return
	}
	s.arch, s.class = first.Arch, first.Class
	queue := []file{s.take(program, first)}
	if !found(program, first) {
		queue = nil
	}
	_ = first.Close() // only read from
	for _, name := range strings.FieldsFunc(getenv("LD_PRELOAD"), func(r rune) bool { return r == ' ' || r == ':' }) {
		if len(queue) > 0 {
			queue[0].needs = append(queue[0].needs, name)
		}
	}
	for ; len(queue) > 0 && len(s.seen) < maxFiles; queue = queue[1:] {
		f := &queue[0]
		for _, name := range f.needs {
			if s.seen[name] {
				continue
			}
			s.seen[name] = true
			path, o := s.open(f, name)
			if o == nil {
				continue
			}
			next := s.take(path, o)
			next.rpath = append(next.rpath, f.rpath...)
			more := found(path, o)
			_ = o.Close() // only read from
			if !more {
				return
			}
			queue = append(queue, next)
		}
	}
}

// file is one whose libraries are searched for.
type file struct {
	needs          []string
	rpath, runpath []string // folders; rpath also those of the files that have needed it
}

type search struct {
	arch        object.Arch
	class       object.Class
	cache       cache
	libraryPath []string
	seen        map[string]bool // names
}

// take returns what a file needs.
func (s *search) take(path string, o *object.Image) file {
	rpath, runpath := o.SearchPaths()
	origin := filepath.Dir(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		origin = filepath.Dir(real)
	}
	f := file{needs: o.Dependencies(), runpath: folders(runpath, origin)}
	if runpath == "" { // otherwise RPATH doesn't count
		f.rpath = folders(rpath, origin)
	}
	return f
}

// open opens the library of a name that a file needs; nil if it isn't found.
func (s *search) open(f *file, name string) (string, *object.Image) {
	if strings.Contains(name, "/") {
		return s.try(name)
	}
	for _, dir := range slices.Concat(f.rpath, s.libraryPath, f.runpath) {
		if path, o := s.try(filepath.Join(dir, name)); o != nil {
			return path, o
		}
	}
	for _, path := range s.cache[name] {
		if path, o := s.try(path); o != nil {
			return path, o
		}
	}
	for _, dir := range standardFolders(s.arch) {
		if path, o := s.try(filepath.Join(dir, name)); o != nil {
			return path, o
		}
	}
	return "", nil
}

// try opens a file if it is an image for the program's processor.
func (s *search) try(path string) (string, *object.Image) {
	o, err := object.Open(path)
	if err != nil {
		return "", nil
	}
	if o.Format != object.ELF || o.Arch != s.arch || o.Class != s.class {
		_ = o.Close() // only looked at
		return "", nil
	}
	return path, o
}

// standardFolders are those that loaders look in without being told. A loader looks in some of them only; it finds most by its cache.
func standardFolders(arch object.Arch) []string {
	dirs := []string{"/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"}
	// Debian's, and those of what is made of it (wiki.debian.org/Multiarch/Tuples).
	if tuple := map[object.Arch]string{object.AMD64: "x86_64-linux-gnu", object.ARM64: "aarch64-linux-gnu", object.I386: "i386-linux-gnu"}[arch]; tuple != "" {
		dirs = append(dirs, "/lib/"+tuple, "/usr/lib/"+tuple)
	}
	return dirs
}

// folders are those of a list. Relative ones, which depend on where the program is started, are left out, and so are those with a $PLATFORM.
func folders(list, origin string) (dirs []string) {
	for dir := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ':' || r == ';' }) {
		dir = strings.NewReplacer("$ORIGIN", origin, "${ORIGIN}", origin, "$LIB", "lib", "${LIB}", "lib").Replace(dir)
		if filepath.IsAbs(dir) && !strings.Contains(dir, "$") {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
