package dwarf

// A Range is a half-open range of link addresses; in a relocatable file, of those
// that Data.Place gives to its sections. It lies in executable code.
type Range struct{ Low, High uint64 }

// A String names a string in one of the string sections, or in .debug_info
// or .debug_line: the section in the top byte, the offset below. Equal Strings are equal
// strings; different ones may be. The zero String is none. See Data.Bytes.
type String uint64

// A Function is one subprogram with code. Its name is the linkage name when the
// producer gave one (mangled), else the plain one, taken from the abstract origin
// or the specification when the entry itself has none (DWARF 5 §3.3.8.2, §2.13.2).
type Function struct {
	Name    String
	Ranges  Span   // in Contents.Ranges, at least one
	Inlines Span   // in Contents.Inlines, in the order of the entries: a parent before its children
	File    uint32 // of the declaration: index in Contents.Files, 0 is none, or one of another unit's table
	Line    uint32 // of the declaration, 0 is none
}

// An Inline is one call that was inlined (DW_TAG_inlined_subroutine).
type Inline struct {
	Name     String // of the callee
	Ranges   Span   // in Contents.Ranges; none for a call without code that has others in it
	CallFile uint32 // index in Contents.Files, 0 is none
	CallLine uint32 // 0 is none
	Depth    uint32 // 1 is directly in the function
}

// A Span is a piece of one of the slices of Contents.
type Span struct{ First, Count uint32 }

// A File is one file of the line table. A relative Dir is below the unit's
// compilation directory; CompDir is that directory then, none otherwise.
type File struct{ CompDir, Dir, Name String }

// A Row is one row of the line table, or the end of a sequence. Rows of a sequence
// follow one another with rising addresses, no two with the same one; a row that
// would repeat the file and line of the last is left out.
type Row struct {
	Addr uint64
	File uint32 // index in Contents.Files
	Line uint32
	End  bool // the first address behind the sequence; File and Line mean nothing
}

// Contents is what a unit says about its code. The slices are used again by the
// next Read into the same Contents.
type Contents struct {
	Functions []Function
	Inlines   []Inline
	Ranges    []Range
	Files     []File // index 0 is no file
	Rows      []Row

	reader *reader // made by the first Read
}
