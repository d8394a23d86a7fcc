package perf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
)

// record makes a record of fields: numbers of 4 and 8 bytes, and bytes.
func record(kind Type, misc uint16, parts ...any) []byte {
	b := make([]byte, headerSize)
	for _, p := range parts {
		switch v := p.(type) {
		case uint32:
			b = binary.NativeEndian.AppendUint32(b, v)
		case uint64:
			b = binary.NativeEndian.AppendUint64(b, v)
		case string:
			b = append(append(b, v...), make([]byte, 8-len(v)%8)...)
		case []byte:
			b = append(b, v...)
		}
	}
	binary.NativeEndian.PutUint32(b, uint32(kind))
	binary.NativeEndian.PutUint16(b[4:], misc)
	binary.NativeEndian.PutUint16(b[6:], uint16(len(b)))
	return b
}

// sampleRecord has a chain of two addresses, registers 100, 101 … and a stack of which 16 of 24 bytes were there.
func sampleRecord(time uint64) []byte {
	parts := []any{uint32(7), uint32(8), time, uint64(3), ^uint64(511), uint64(0x1001), uint64(0x1002), uint64(Bits64)}
	for k := range RegisterCount {
		parts = append(parts, uint64(100+k))
	}
	return record(Sample, miscKernel, append(parts, uint64(24), bytes.Repeat([]byte{0xab}, 24), uint64(16))...)
}

// allRecords are one of each type, as the kernel lays them out.
func allRecords() [][]byte {
	id := []any{uint32(7), uint32(8), uint64(1000)} // at the end of all but samples
	with := func(kind Type, misc uint16, parts ...any) []byte { return record(kind, misc, append(parts, id...)...) }
	return [][]byte{
		sampleRecord(999),
		with(Lost, 0, uint64(3), uint64(44)),
		with(LostSamples, 0, uint64(45)),
		with(Comm, miscExec, uint32(7), uint32(8), "name"),
		with(Fork, 0, uint32(9), uint32(7), uint32(10), uint32(8), uint64(5)),
		with(Exit, 0, uint32(9), uint32(7), uint32(10), uint32(8), uint64(5)),
		with(Throttle, 0, uint64(1), uint64(2), uint64(3)),
		with(Mmap, 0, uint32(7), uint32(8), uint64(0x400000), uint64(0x1000), uint64(0x2000),
			uint32(8), uint32(1), uint64(77), uint64(0), uint32(5), uint32(2), "/bin/true"),
		with(99, 0, uint64(1)),
	}
}

func TestRecordsAreReadAsTheKernelWritesThem(t *testing.T) {
	all := allRecords()
	read := func(k int) *Record {
		r := new(Record)
		if err := r.Decode(all[k]); err != nil {
			t.Fatalf("record %d: %v", k, err)
		}
		return r
	}
	s := read(0)
	if s.PID != 7 || s.TID != 8 || s.Time != 999 || !s.Kernel || s.ABI != Bits64 || len(s.Stack) != 16 ||
		s.Regs[0] != 100 || s.Regs[SP] != 100+SP || s.Regs[IP] != 100+IP || s.Regs[RegisterCount-1] != 100+RegisterCount-1 {
		t.Errorf("sample %+v", s)
	}
	if first, last := binary.NativeEndian.Uint64(s.Chain), binary.NativeEndian.Uint64(s.Chain[len(s.Chain)-8:]); len(s.Chain) != 24 || first < ContextMax || last != 0x1002 {
		t.Errorf("chain %x", s.Chain)
	}
	if r := read(1); r.Count != 44 || r.Time != 1000 {
		t.Errorf("lost %+v", r)
	}
	if r := read(2); r.Count != 45 {
		t.Errorf("lost samples %+v", r)
	}
	if r := read(3); !r.Exec || string(r.Name) != "name" || r.PID != 7 {
		t.Errorf("comm %+v", r)
	}
	for _, k := range []int{4, 5} {
		if r := read(k); r.PID != 9 || r.Parent != 7 || r.TID != 10 {
			t.Errorf("fork or exit %+v", r)
		}
	}
	if r := read(7); r.Addr != 0x400000 || r.Len != 0x1000 || r.Offset != 0x2000 || r.Dev != 8<<32|1 || r.Inode != 77 || string(r.Name) != "/bin/true" {
		t.Errorf("mmap %+v", r)
	}
	if r := read(8); r.Type != 99 || r.Time != 1000 {
		t.Errorf("unknown %+v", r)
	}
	for k, b := range all {
		if got, want := timeOf(b), read(k).Time; got != want {
			t.Errorf("record %d: time %d, want %d", k, got, want)
		}
	}
}

func TestTruncatedRecordsAreErrors(t *testing.T) {
	for k, whole := range allRecords()[:3] {
		for n := range whole {
			var r Record
			if err := r.Decode(whole[:n]); !errors.Is(err, errShort) {
				t.Errorf("record %d, %d of %d bytes: %v", k, n, len(whole), err)
			}
		}
	}
}

func TestRingGivesAllRecordsAlsoWhereItWraps(t *testing.T) {
	const size = 512
	r := ring{data: make([]byte, size)}
	head, wrapped := uint64(0), 0
	for n := range uint64(200) {
		rec := sampleRecord(n)
		for k, c := range rec {
			r.data[(head+uint64(k))%size] = c
		}
		if head%size+uint64(len(rec)) > size {
			wrapped++
		}
		head += uint64(len(rec))
		var got []byte
		if err := r.take(head, func(b []byte) { got = slices.Clone(b) }); err != nil || !bytes.Equal(got, rec) {
			t.Fatalf("record %d: %x, %v; want %x", n, got, err, rec)
		}
	}
	if wrapped == 0 || r.tail != head {
		t.Errorf("%d wrapped, tail %d of %d", wrapped, r.tail, head)
	}
}

func FuzzRing(f *testing.F) {
	for _, rec := range allRecords() {
		f.Add(rec, uint16(0), uint16(len(rec)))
		f.Add(rec, uint16(4090), uint16(len(rec)))
	}
	f.Fuzz(func(t *testing.T, content []byte, tail, used uint16) {
		const size = 4096
		r := ring{data: make([]byte, size), tail: uint64(tail) &^ 7}
		for k, c := range content[:min(len(content), size)] {
			r.data[(r.tail+uint64(k))%size] = c
		}
		head, total := r.tail+uint64(used), 0
		_ = r.take(head, func(b []byte) {
			total += len(b)
			_ = timeOf(b)
			var rec Record
			if rec.Decode(b) == nil && len(rec.Stack)+len(rec.Name) > len(b) {
				t.Errorf("%d bytes of stack and %d of name in a record of %d", len(rec.Stack), len(rec.Name), len(b))
			}
		})
		if r.tail != head || total > size {
			t.Errorf("tail %d, head %d, %d bytes given", r.tail, head, total)
		}
	})
}

func TestListsOfProcessorsAreRead(t *testing.T) {
	for text, want := range map[string][]int{"0": {0}, "0-3": {0, 1, 2, 3}, "0-1,4,6-7": {0, 1, 4, 6, 7}} {
		if got, err := parseList(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "a", "3-1", "0-", "0-99999999", "-1", "1,,2"} {
		if got, err := parseList(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
