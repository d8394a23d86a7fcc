package object

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// copyTree copies a folder.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			write(t, filepath.Join(to, strings.TrimPrefix(path, from)), read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDSYMBundlesAreFoundByEachRule(t *testing.T) {
	f := buildMach(t, "arm64")
	for _, test := range []struct{ name, binary, bundle string }{
		{"beside the file", "libt.dylib", "libt.dylib.dSYM"},
		{"beside the application", "T.app/Contents/MacOS/T", "T.app.dSYM"},
		{"beside the framework", "T.framework/Versions/A/T", "T.framework.dSYM"},
		{"beside the application that the framework is in", "A.app/Frameworks/T.framework/T", "T.dSYM"},
		{"name in a folder", "libt.dylib", "debug/libt.dylib.dSYM"},
		{"any name in a folder", "libt.dylib", "debug/4C4C44.dSYM"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			binary, bundle := filepath.Join(dir, test.binary), filepath.Join(dir, test.bundle)
			write(t, binary, read(t, f.dylib))
			search := &DebugSearch{Dirs: []string{filepath.Join(dir, "debug")}}
			if _, err := search.Debug(open(t, binary)); !errors.Is(err, ErrNoDebug) {
				t.Fatalf("before: %v", err)
			}
			copyTree(t, f.dsym, bundle)
			// Other things that such folders have must do no harm.
			write(t, filepath.Join(dir, "debug", "damaged.dSYM", "Contents", "Resources", "DWARF", "x"), []byte("no Mach-O file"))
			write(t, filepath.Join(bundle, "Contents", "Resources", "DWARF", "a note"), []byte("text"))
			copyTree(t, buildMach(t, "x86_64").dsym, filepath.Join(dir, "debug", "other.dSYM"))
			i := open(t, binary)
			d, err := search.Debug(i)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if !strings.HasPrefix(d.Name(), bundle) || d.ID() != i.ID() || d.Type != DebugCompanion || d.Section(".debug_info") == nil {
				t.Errorf("found %s, %v, ID %s", d.Name(), d.Type, d.ID())
			}
			listed := false
			for _, c := range search.Companions(i) {
				listed = listed || c.Kind == DSYM && c.Err == nil && c.Path == d.Name()
			}
			if !listed {
				t.Error("it is not among the companions")
			}
		})
	}
}

func TestAFolderMayBeTheBundleItself(t *testing.T) {
	f := buildMach(t, "arm64")
	path := filepath.Join(t.TempDir(), "renamed")
	write(t, path, read(t, f.dylib))
	d, err := (&DebugSearch{Dirs: []string{f.dsym}}).Debug(open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Name() != f.dwarfFile() {
		t.Errorf("found %s", d.Name())
	}
}

func TestDSYMOfAnotherBuildIsRefusedByName(t *testing.T) {
	f, other := buildMach(t, "arm64"), buildMach(t, "x86_64")
	path := filepath.Join(t.TempDir(), "libt.dylib")
	write(t, path, read(t, f.dylib))
	copyTree(t, other.dsym, path+".dSYM")
	i := open(t, path)
	_, err := new(DebugSearch).Debug(i)
	var mismatch *IDError
	if !errors.Is(err, ErrNoDebug) || !errors.As(err, &mismatch) || mismatch.Want != i.ID() || !strings.HasPrefix(mismatch.Path, path+".dSYM") {
		t.Errorf("error %v", err)
	}
	if err != nil && !strings.Contains(err.Error(), open(t, other.dylib).ID()) {
		t.Errorf("error %q does not say the other ID", err)
	}
}

func TestDSYMOfSeveralArchitecturesGivesTheRightOne(t *testing.T) {
	realtest.Need(t, realtest.LLVMLipo)
	dir := t.TempDir()
	a, x := buildMach(t, "arm64"), buildMach(t, "x86_64")
	inside := filepath.Join(dir, "libt.dylib.dSYM", "Contents", "Resources", "DWARF", "libt.dylib")
	if err := os.MkdirAll(filepath.Dir(inside), 0o777); err != nil {
		t.Fatal(err)
	}
	tool(t, realtest.LLVMLipo, "-create", a.dwarfFile(), x.dwarfFile(), "-output", inside)
	for _, f := range []machFiles{a, x} {
		path := filepath.Join(dir, "libt.dylib")
		write(t, path, read(t, f.dylib))
		i := open(t, path)
		d, err := new(DebugSearch).Debug(i)
		if err != nil {
			t.Fatal(err)
		}
		if d.ID() != i.ID() || d.ArchName() != i.ArchName() {
			t.Errorf("found %s, want %s", d.ArchName(), i.ArchName())
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// objectsOf finds the object files of a fresh build in its own folder, so that a test
// may change them.
func objectsOf(t *testing.T, archived bool) (dir string, i *Image) {
	t.Helper()
	realtest.Need(t, realtest.LD64, realtest.LLVMAr)
	f := buildMach(t, "arm64")
	dir = t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	var objects []string
	for _, path := range f.objects {
		to := in(filepath.Base(path))
		write(t, to, read(t, path))
		objects = append(objects, to)
	}
	link := []string{"-arch", "arm64", "-platform_version", "macos", "11.0", "11.0", "-undefined", "dynamic_lookup", "-dylib", "-all_load", "-o", in("lib")}
	if archived {
		tool(t, realtest.LLVMAr, append([]string{"rcsU", "--format=darwin", in("all.a")}, objects...)...)
		objects = []string{in("all.a")}
	}
	tool(t, realtest.LD64, append(link, objects...)...)
	return dir, withModTimes(t, in("lib"))
}

// withModTimes writes the object files' times into the debug map, as Apple's linker
// does: LLVM's leaves them out, so that its output can be reproduced.
func withModTimes(t *testing.T, path string) *Image {
	t.Helper()
	data := read(t, path)
	i, err := Parse(path, data)
	if err != nil {
		t.Fatal(err)
	}
	files, err := i.OSO()
	if err != nil {
		t.Fatal(err)
	}
	table, err := i.mach.symbolTable()
	if err != nil {
		t.Fatal(err)
	}
	for k := range int(i.mach.symtab.count) {
		if i.mach.nlist(table, k).kind != stabObject {
			continue
		}
		// A member's time is that of the file that was put into the archive.
		path := files[0].Path
		if files[0].Member != "" {
			path = filepath.Join(filepath.Dir(path), files[0].Member)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		files = files[1:]
		i.ByteOrder.PutUint64(data[int(i.mach.symtab.off)+k*nlistSize64+8:], uint64(info.ModTime().Unix()))
	}
	// A file of its own: the first one may be mapped.
	write(t, path+".timed", data)
	return open(t, path+".timed")
}

func TestObjectFilesOfTheDebugMapAreOpened(t *testing.T) {
	for _, archived := range []bool{false, true} {
		_, i := objectsOf(t, archived)
		o, err := new(DebugSearch).Objects(i)
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Files) != len(machSources) {
			t.Errorf("%d object files, want %d", len(o.Files), len(machSources))
		}
		for k := range o.Files {
			file := &o.Files[k]
			if (file.Member != "") != archived {
				t.Errorf("%s: member %q", file, file.Member)
			}
			object, err := o.Open(k)
			if err != nil {
				t.Fatal(err)
			}
			if object.Type != Relocatable || object.Section(".debug_info") == nil {
				t.Errorf("%s: %v without debug information", file, object.Type)
			}
			for _, fn := range file.Functions {
				if found := symbolsNamed(t, object, fn.Name); len(found) != 1 || !found[0].IsFunc() {
					t.Errorf("%s has %+v as %s", file, found, fn.Name)
				}
			}
		}
		listed := 0
		for _, c := range new(DebugSearch).Companions(i) {
			if c.Kind == ObjectDebug && c.Err == nil {
				listed++
			}
		}
		if listed != len(o.Files) {
			t.Errorf("%d object files are among the companions", listed)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		if _, err := o.Open(0); err == nil {
			t.Error("opened after Close")
		}
	}
}

func TestChangedObjectFilesAreRefusedByName(t *testing.T) {
	dir, i := objectsOf(t, false)
	o, err := new(DebugSearch).Objects(i)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	file := &o.Files[0]
	if file.ModTime == 0 {
		t.Fatal("the debug map has no time")
	}
	info, err := os.Stat(file.Path)
	if err != nil {
		t.Fatal(err)
	}
	later := info.ModTime().Add(5e9)
	if err := os.Chtimes(file.Path, later, later); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Open(0); !errors.Is(err, ErrNoDebug) || !strings.Contains(err.Error(), file.Path+": refused: modification time is") {
		t.Errorf("error %v", err)
	}
	// Gone, too, is an answer.
	if err := os.Remove(o.Files[1].Path); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Open(1); !errors.Is(err, ErrNoDebug) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if _, err := new(DebugSearch).Objects(open(t, filepath.Join(dir, "a.c.o"))); !errors.Is(err, ErrNoDebug) {
		t.Errorf("an object file: %v", err)
	}
}

func TestArchivesAreReadLikeArListsThem(t *testing.T) {
	realtest.Need(t, realtest.LLVMAr)
	f := buildMach(t, "arm64")
	long := filepath.Join(t.TempDir(), "a name that is longer than the header's field.o")
	write(t, long, read(t, f.objects[0]))
	for _, format := range []string{"darwin", "gnu", "bsd"} {
		path := filepath.Join(t.TempDir(), "all.a")
		tool(t, realtest.LLVMAr, append([]string{"rcsU", "--format=" + format, path, long}, f.objects...)...)
		data := read(t, path)
		members, err := readArchive(path, memoryContents(data))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, m := range members {
			names = append(names, m.name)
			contents := data[m.off : m.off+m.size]
			if i, err := Parse(m.name, contents); err != nil || i.Type != Relocatable {
				t.Errorf("%s: %s: %v", format, m.name, err)
			}
			info, err := os.Stat(filepath.Join(f.dir, m.name))
			if err == nil && info.ModTime().Unix() != m.modTime {
				t.Errorf("%s: %s: time %d, want %d", format, m.name, m.modTime, info.ModTime().Unix())
			}
		}
		if want := strings.TrimSpace(tool(t, realtest.LLVMAr, "t", path)); strings.Join(names, "\n") != want {
			t.Errorf("%s: members %q, want %q", format, names, want)
		}
		// Damage is an error or fewer members, never more than the file has room for.
		for at := range min(len(data), 4096) {
			for _, flip := range []byte{0xff, 0x01} {
				data[at] ^= flip
				if members, _ := readArchive("x", memoryContents(data)); len(members) > len(data)/archiveHeaderSize {
					t.Errorf("%d members", len(members))
				}
				readArchive("x", memoryContents(data[:at]))
				data[at] ^= flip
			}
		}
	}
}

func FuzzArchive(f *testing.F) {
	f.Add([]byte(archiveMagic + "a/              0           0     0     644     2         `\nhi"))
	f.Add([]byte(archiveMagic + "#1/4            12          0     0     644     6         `\nnamehi"))
	f.Add([]byte(archiveMagic + "//              0           0     0     644     8         `\nlong.o/\n/0              0           0     0     644     2         `\nhi"))
	f.Fuzz(func(t *testing.T, data []byte) {
		members, _ := readArchive("fuzz", memoryContents(data))
		for _, m := range members {
			if m.off > uint64(len(data)) || m.size > uint64(len(data))-m.off {
				t.Errorf("member %q at %#x, %#x bytes of %#x", m.name, m.off, m.size, len(data))
			}
		}
	})
}
