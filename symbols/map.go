package symbols

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/callreel/callreel/internal/ownfolder"
	"github.com/callreel/callreel/object"
)

// A Map is an open symbol map. Its methods may be called from several goroutines at
// once, except Close.
type Map struct {
	name  string
	head  header
	id    string
	image string
	data  []byte
	unmap func() error

	missing []error // of a map that was made just now: what it was made without

	regions                       []byte
	buckets, index                []byte
	blocks, callees, files, texts []byte
	choices                       []byte // records of a choice; none in most maps
	blockCount                    uint64
	calleeCount                   uint64
}

// maxForeign bounds maps that other users can write, in bytes: the largest that is known,
// of all modules of a kernel, is a quarter of it.
const maxForeign = 128 << 20

// Open maps a symbol map read-only and checks its header. Nothing else is read, so it
// takes microseconds whatever the size; what is damaged further in is noticed by the
// lookups that come across it. The map must be closed. Errors wrap ErrNotMap when the
// file can be read but not used.
//
// While it is in use the file must not be truncated; renaming another one over it, as
// Store does, is safe. A file that other users can write is read instead.
func Open(path string) (*Map, error) {
	// Stat comes first because opening a FIFO would block until it has a writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("symbols: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("symbols: %s: not a regular file (%s)", path, info.Mode().Type())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("symbols: %w", err)
	}
	defer f.Close() // only read from
	return openFile(f)
}

// openFile is Open for a file that is open, and may be closed then.
func openFile(f *os.File) (*Map, error) {
	path := f.Name()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("symbols: %w", err)
	}
	if size := info.Size(); size < headerSize || size > math.MaxInt {
		return nil, fmt.Errorf("symbols: %s: %w: %d bytes long", path, ErrNotMap, size)
	}
	open := mapFile
	if !ownfolder.Trusted(info) {
		// Another user may truncate it while it is mapped, and that would end this process.
		if open = readFile; info.Size() > maxForeign {
			return nil, fmt.Errorf("symbols: %s: %w: %d bytes of another user's, at most %d are read", path, ErrNotMap, info.Size(), maxForeign)
		}
	}
	data, unmap, err := open(f, int(info.Size()))
	if err != nil {
		return nil, fmt.Errorf("symbols: %s: mapping %d bytes: %w", path, info.Size(), err)
	}
	m, err := Parse(path, data)
	if err != nil {
		return nil, errors.Join(err, unmap())
	}
	m.unmap = unmap
	return m, nil
}

// readFile reads the first size bytes of f; there is nothing to unmap.
func readFile(f *os.File, size int) (data []byte, unmap func() error, err error) {
	data = make([]byte, size)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, nil, err
	}
	return data, func() error { return nil }, nil
}

// Parse is Open for a map in memory, which is kept and must not change. The name
// appears in errors only.
func Parse(name string, data []byte) (*Map, error) {
	m := &Map{name: name, data: data}
	if err := m.head.parse(data); err != nil {
		return nil, fmt.Errorf("symbols: %s: %w", name, err)
	}
	m.id, m.image = string(m.section(sectionID)), string(m.section(sectionName))
	m.regions, m.buckets = m.section(sectionRegions), m.section(sectionBuckets)
	m.index = m.section(sectionIndex)
	m.blocks, m.callees = m.section(sectionBlocks), m.section(sectionCallees)
	m.files, m.texts = m.section(sectionFiles), m.section(sectionStrings)
	m.findChoices()
	m.blockCount = uint64(len(m.index)) / indexSize
	m.calleeCount = math.MaxUint32
	if width := uint64(m.head.calleeSize()); width > 0 {
		m.calleeCount = uint64(len(m.callees)-slack) * 8 / width
	}
	return m, nil
}

// IsMap says whether the bytes, the first of a file, begin like a symbol map of any
// version.
func IsMap(start []byte) bool {
	return len(start) >= len(magic) && string(start[:len(magic)]) == magic
}

func (m *Map) section(k int) []byte {
	s := m.head.sections[k]
	return m.data[s.off : s.off+s.size : s.off+s.size]
}

// Close unmaps the file. The strings of frames must not be used afterwards; ID and
// ImageName remain valid. A second Close does nothing.
func (m *Map) Close() error {
	unmap := m.unmap
	m.unmap, m.data = nil, nil
	m.regions, m.buckets, m.index = nil, nil, nil
	m.blocks, m.callees, m.files, m.texts, m.choices = nil, nil, nil, nil, nil
	m.blockCount, m.calleeCount = 0, 0
	if unmap == nil {
		return nil
	}
	if err := unmap(); err != nil {
		return fmt.Errorf("symbols: %s: unmapping: %w", m.name, err)
	}
	return nil
}

// WriteTo writes the map's bytes, as they were opened.
func (m *Map) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(m.data)
	return int64(n), err
}

// Name is the path or name that the map was opened under.
func (m *Map) Name() string { return m.name }

// ID is the image's build ID or UUID in lower-case hexadecimal, "" when it has none.
func (m *Map) ID() string { return m.id }

// ImageName is the base name of the file that the map was made from.
func (m *Map) ImageName() string { return m.image }

// Arch is the image's architecture.
func (m *Map) Arch() object.Arch { return m.head.arch }

// Format is the image's format.
func (m *Map) Format() object.Format { return m.head.format }

// Class is the width of the image's addresses.
func (m *Map) Class() object.Class { return m.head.class }

// BaseAddr is the link address of the image's first loaded byte (object.Image's
// BaseAddr), from which its slide is counted.
func (m *Map) BaseAddr() uint64 { return m.head.base }

// Relocatable says that addresses are those that object.Image gives the sections of
// a relocatable file.
func (m *Map) Relocatable() bool { return m.head.flags&flagRelocatable != 0 }

// Explain says in words why a lookup found nothing: its reason, and what the map was made without.
func (m *Map) Explain(why Reason) string {
	text := why.String()
	if why != Stripped && why != NoFunction {
		return text
	}
	for k, err := range m.missing {
		text += [2]string{"; missing is: ", "; "}[min(k, 1)] + err.Error()
	}
	return text
}

// HasDWARF says whether the map was made with DWARF; otherwise it has functions of
// symbol tables only, without files and lines.
func (m *Map) HasDWARF() bool { return m.head.flags&flagDWARF != 0 }

// Fetched says that the map was made of what a Fetcher got.
func (m *Map) Fetched() bool { return m.head.flags&flagFetched != 0 }

// HasSymbols says whether a symbol table named functions.
func (m *Map) HasSymbols() bool { return m.head.flags&flagSymbols != 0 }

// fits says whether the map may be that of an image of the same ID, as far as the places
// of its code tell; it may where either does not know them.
func (m *Map) fits(layout uint64) bool {
	return m.head.layout == 0 || layout == 0 || m.head.layout == layout
}

// Stripped says that neither DWARF nor a symbol table named any function.
func (m *Map) Stripped() bool { return m.blockCount == 0 }

// Counts returns the numbers of functions (ranges of code with a name), inlined calls
// and rows, and the map's size in bytes.
func (m *Map) Counts() (functions, inlines, rows uint64, size int64) {
	return m.head.functions, m.head.inlines, m.head.rows, int64(m.head.total)
}

// word reads number k of a table of 32-bit numbers; 0 when it has no such.
func word(table []byte, k uint64) uint64 {
	if k >= uint64(len(table))/4 {
		return 0
	}
	return uint64(binary.LittleEndian.Uint32(table[4*k:]))
}
