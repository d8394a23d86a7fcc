package crash

import (
	"encoding/binary"
	"unicode/utf16"

	"github.com/callreel/callreel/sampler/corefile"
	"github.com/callreel/callreel/unwind"
)

// dumpWriter puts a minidump together.
type dumpWriter struct {
	b       []byte
	streams []struct {
		kind uint32
		at   location
	}
}

var le = binary.LittleEndian

func newDumpWriter() *dumpWriter { return &dumpWriter{b: make([]byte, minidumpHeaderSize)} }

func (d *dumpWriter) put(data []byte) location {
	at := location{uint32(len(data)), uint32(len(d.b))}
	d.b = append(d.b, data...)
	return at
}

func (d *dumpWriter) stream(kind uint32, data []byte) {
	d.streams = append(d.streams, struct {
		kind uint32
		at   location
	}{kind, d.put(data)})
}

func (d *dumpWriter) text(s string) uint32 {
	units := utf16.Encode([]rune(s))
	b := le.AppendUint32(nil, uint32(2*len(units)))
	for _, u := range units {
		b = le.AppendUint16(b, u)
	}
	return d.put(append(b, 0, 0)).rva
}

func (d *dumpWriter) bytes() []byte {
	var list []byte
	for _, s := range d.streams {
		list = le.AppendUint32(list, s.kind)
		list = appendLocation(list, s.at)
	}
	at := d.put(list)
	copy(d.b, "MDMP")
	le.PutUint32(d.b[4:], 0xa793)
	le.PutUint32(d.b[8:], uint32(len(d.streams)))
	le.PutUint32(d.b[12:], at.rva)
	return d.b
}

func appendLocation(b []byte, at location) []byte {
	return le.AppendUint32(le.AppendUint32(b, at.size), at.rva)
}

// dumpImage is a module of a dump.
type dumpImage struct {
	path string
	load uint64
	size uint32
	id   []byte // a build ID
}

// dumpOf writes a minidump of what a core holds of stacks: registers of all threads, 64 KB of
// each stack, the images that are named, and the signal as Crashpad writes it.
func dumpOf(f *corefile.File, images ...dumpImage) []byte {
	d := newDumpWriter()
	processor, l := uint16(processorAMD64), contextAMD64
	flags := uint32(0x100000)
	switch f.Arch {
	case unwind.I386:
		processor, l, flags = processorI386, contextI386, 0x10000
	case unwind.ARM64:
		processor, l, flags = processorARM64, contextARM64, 0x400000
	}
	system := make([]byte, 56)
	le.PutUint16(system, processor)
	le.PutUint32(system[20:], platformLinux)
	d.stream(streamSystem, system)
	threads := le.AppendUint32(nil, uint32(len(f.Threads)))
	var first location
	for k := range f.Threads {
		t := &f.Threads[k]
		context := make([]byte, 912)
		if l.width == 4 {
			context = context[:716]
		}
		le.PutUint32(context[map[bool]int{true: 48, false: 0}[f.Arch == unwind.AMD64]:], flags)
		for _, r := range l.regs {
			v := t.Regs.PC
			if r.reg >= 0 {
				v, _ = t.Regs.Get(r.reg)
			}
			if l.width == 4 {
				le.PutUint32(context[r.off:], uint32(v))
			} else {
				le.PutUint64(context[r.off:], v)
			}
		}
		at := d.put(context)
		if k == 0 {
			first = at
		}
		sp, _ := t.Regs.Get(f.Arch.SP())
		sp &^= 15
		memory := d.put(f.Bytes(sp, 64<<10))
		threads = le.AppendUint32(threads, uint32(t.TID))
		threads = append(threads, make([]byte, 20)...)
		threads = le.AppendUint64(threads, sp)
		threads = appendLocation(threads, memory)
		threads = appendLocation(threads, at)
	}
	d.stream(streamThreads, threads)
	modules := le.AppendUint32(nil, uint32(len(images)))
	for _, im := range images {
		name := d.text(im.path)
		id := d.put(append([]byte("LEpB"), im.id...))
		module := make([]byte, minidumpModuleSize)
		le.PutUint64(module, im.load)
		le.PutUint32(module[8:], im.size)
		le.PutUint32(module[20:], name)
		copy(module[76:], appendLocation(nil, id))
		modules = append(modules, module...)
	}
	d.stream(streamModules, modules)
	exception := make([]byte, 168)
	le.PutUint32(exception, uint32(f.Threads[0].TID))
	le.PutUint32(exception[8:], 11)
	le.PutUint32(exception[12:], 1)
	le.PutUint64(exception[24:], 0x10)
	copy(exception[160:], appendLocation(nil, first))
	d.stream(streamException, exception)
	return d.bytes()
}
