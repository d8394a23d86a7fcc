package object

import "strings"

// The debugger's entries of a symbol table that make up the debug map
// (mach-o/stab.h).
const (
	stabFunction = 0x24 // N_FUN: a function; with an empty name, the size of the last
	stabSource   = 0x64 // N_SO: a source file; with an empty name, the end of a unit
	stabObject   = 0x66 // N_OSO: an object file
)

// An ObjectFile is an object file that a Mach-O image was linked from and that still
// holds its debug information, as the image's debug map says.
type ObjectFile struct {
	Path      string // of the object file, or of the archive that it is in
	Member    string // its name in the archive, "" for a file of its own
	ModTime   int64  // when it was last changed, in seconds since 1970; 0 when not told
	Functions []MappedFunction
}

// String is the path, with the member in parentheses, as linkers write it.
func (o *ObjectFile) String() string {
	if o.Member != "" {
		return o.Path + "(" + o.Member + ")"
	}
	return o.Path
}

// A MappedFunction says where the linker has put a function of an object file.
type MappedFunction struct {
	Name string // raw, as in the object file's symbol table
	Addr uint64 // link address in the image
	Size uint64 // bytes
}

// OSO lists the object files of the debug map of a Mach-O image (the N_OSO entries
// of LC_SYMTAB) with the functions that came from each; none for images that were
// linked without debug information, and for ELF. Paths come from the file and must
// not be trusted. Where the table is damaged, what could be read is returned beside
// the error.
func (i *Image) OSO() ([]ObjectFile, error) {
	if i.Format != MachO {
		return nil, nil
	}
	m := &i.mach
	t, err := m.symbolTable()
	if t == nil || err != nil {
		return nil, err
	}
	var files []ObjectFile
	var first error
	for k := range len(t.raw) / t.size {
		n := m.nlist(t, k)
		if n.kind != stabFunction && n.kind != stabSource && n.kind != stabObject {
			continue
		}
		name, ok := t.strings.at(n.name)
		if !ok {
			if first == nil {
				first = m.errorf("%s: debug map entry %d: name at offset %#x is outside its string table of %#x bytes or has no end", t.where, k, n.name, len(t.strings.text))
			}
			continue
		}
		if n.kind == stabObject {
			path, member := splitMember(name)
			files = append(files, ObjectFile{Path: path, Member: member, ModTime: int64(n.value)})
		} else if n.kind == stabFunction && len(files) > 0 {
			files[len(files)-1].addFunction(name, n.value)
		}
	}
	return files, first
}

// addFunction takes one N_FUN entry: a function's name and address, or the size of
// the function before.
func (o *ObjectFile) addFunction(name string, value uint64) {
	if name != "" {
		o.Functions = append(o.Functions, MappedFunction{Name: name, Addr: value})
		return
	}
	if last := len(o.Functions) - 1; last >= 0 && o.Functions[last].Size == 0 {
		o.Functions[last].Size = value
	}
}

// splitMember takes "lib.a(member.o)" apart.
func splitMember(name string) (path, member string) {
	at := strings.LastIndexByte(name, '(')
	if at <= 0 || !strings.HasSuffix(name, ")") {
		return name, ""
	}
	return name[:at], name[at+1 : len(name)-1]
}
