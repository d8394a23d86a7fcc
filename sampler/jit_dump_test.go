package sampler

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// dumpOf makes a jitdump file of records.
func dumpOf(order binary.AppendByteOrder, version uint32, records ...[]byte) []byte {
	b := order.AppendUint32(nil, dumpMagic)
	for _, v := range []uint32{version, dumpHeader, 0, 0, 1234} { // no machine
		b = order.AppendUint32(b, v)
	}
	b = order.AppendUint64(order.AppendUint64(b, 1), 0)
	return append(b, bytes.Join(records, nil)...)
}

func dumpRecordOf(order binary.AppendByteOrder, id uint32, words []uint64, rest ...byte) []byte {
	b := order.AppendUint32(nil, id)
	b = order.AppendUint32(b, uint32(dumpRecord+8+8*len(words)+len(rest)))
	b = order.AppendUint64(b, 0)
	b = order.AppendUint32(order.AppendUint32(b, 1234), 1234)
	for _, w := range words {
		b = order.AppendUint64(b, w)
	}
	return append(b, rest...)
}

func loaded(order binary.AppendByteOrder, addr, size, index uint64, name string) []byte {
	return dumpRecordOf(order, dumpLoad, []uint64{addr, addr, size, index}, append([]byte(name+"\x00"), make([]byte, size)...)...)
}

func moved(order binary.AppendByteOrder, from, to, size, index uint64) []byte {
	return dumpRecordOf(order, dumpMove, []uint64{to, from, to, size, index})
}

func TestJITDumpNamesCodeWhereItIs(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		data := dumpOf(order, dumpVersion,
			loaded(order, 0x1000, 0x100, 1, "first"),
			dumpRecordOf(order, 2, []uint64{0x1000, 0}), // lines of source
			loaded(order, 0x1040, 0x20, 2, "in its place"),
			loaded(order, 0x3000, 0x2000, 3, "large, and moved"),
			dumpRecordOf(order, 77, nil, 1, 2, 3), // of a later version
			moved(order, 0x3000, 0x8000, 0x2000, 3),
			moved(order, 0x9000, 0xa000, 0x10, 9), // never loaded
			loaded(order, 0xb000, 0x10, 4, strings.Repeat("n", 3*maxJITName)),
		)
		end := append(bytes.Clone(data), dumpRecordOf(order, dumpClose, nil)...)
		end = append(end, loaded(order, 0x1000, 0x10, 5, "behind the end")...)
		var d jitDump
		// It is read while it is written.
		for n := range len(data) + 1 {
			if err := d.add(bytes.NewReader(data[:n]), int64(n)); err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
		}
		if err := d.add(bytes.NewReader(end), int64(len(end))); err != nil {
			t.Fatal(err)
		}
		for addr, want := range map[uint64]string{
			0xfff: "", 0x1000: "first", 0x103f: "first", 0x1040: "in its place", 0x1060: "first", 0x10ff: "first", 0x1100: "",
			0x3000: "", 0x4fff: "", 0x8000: "large, and moved", 0x9fff: "large, and moved", 0xa000: "",
		} {
			if got := d.find(addr); got != want {
				t.Errorf("%v: %#x is %q, want %q", order, addr, got, want)
			}
		}
		if got := d.find(0xb000); got != strings.Repeat("n", maxJITName) {
			t.Errorf("%v: a name of %d bytes", order, len(got))
		}
	}
}

func TestJITDumpsThatAreDamagedSayWhere(t *testing.T) {
	order := binary.LittleEndian
	good := loaded(order, 0x1000, 0x100, 1, "good")
	short := bytes.Clone(good)
	order.PutUint32(short[4:], 8)
	large := bytes.Clone(good)
	order.PutUint64(large[dumpRecord+24:], 1<<40)
	for name, c := range map[string]struct {
		data []byte
		want error
		says string
	}{
		"magic":          {make([]byte, 64), errDumpMagic, ""},
		"version":        {dumpOf(order, 2, good), errDumpVersion, "2"},
		"short record":   {dumpOf(order, 1, good, short), errDumpRecord, "offset "},
		"more code":      {dumpOf(order, 1, good, large), errDumpRecord, "offset "},
		"too few fields": {dumpOf(order, 1, good, dumpRecordOf(order, dumpLoad, nil)), errDumpRecord, "offset "},
	} {
		var d jitDump
		err := d.add(bytes.NewReader(c.data), int64(len(c.data)))
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if c.want == errDumpRecord && d.find(0x1000) != "good" {
			t.Errorf("%s: what stands before it is lost", name)
		}
		if err := d.add(bytes.NewReader(c.data), int64(len(c.data))); err != nil {
			t.Errorf("%s: said again: %v", name, err)
		}
	}
}

func FuzzJITDump(f *testing.F) {
	order := binary.LittleEndian
	f.Add(dumpOf(order, 1, loaded(order, 0x1000, 0x100, 1, "a"), moved(order, 0x1000, 0x2000, 0x100, 1)), uint64(0x2010))
	f.Add(dumpOf(binary.BigEndian, 1, loaded(binary.BigEndian, 0x1000, 0x100, 1, "a")), uint64(0x1010))
	f.Fuzz(func(t *testing.T, data []byte, addr uint64) {
		var d jitDump
		_ = d.add(bytes.NewReader(data), int64(len(data))) // damaged files have names before the damage
		if name := d.find(addr); len(name) > maxJITName || !bytes.Contains(data, []byte(name)) {
			t.Errorf("%q", name)
		}
	})
}

// A file of nothing but tiny records doesn't keep its reader for ever.
func TestJITDumpsOfTooManyRecordsEnd(t *testing.T) {
	order := binary.LittleEndian
	record := order.AppendUint64(order.AppendUint64(nil, dumpRecord<<32|77), 0)
	data := append(dumpOf(order, dumpVersion, loaded(order, 0x1000, 0x10, 1, "early")), bytes.Repeat(record, maxDumpRecords)...)
	data = append(data, loaded(order, 0x2000, 0x10, 2, "late")...)
	var d jitDump
	if err := d.add(bytes.NewReader(data), int64(len(data))); !errors.Is(err, errJITSize) {
		t.Errorf("%v, want %v", err, errJITSize)
	}
	if name := d.find(0x1000); name != "early" {
		t.Errorf("%q", name)
	}
	if name := d.find(0x2000); name != "" {
		t.Errorf("%q is behind the records that are read", name)
	}
}
