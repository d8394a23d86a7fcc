package dwarf

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/callreel/callreel/object"
)

// attribute is one attribute of an entry that a test writes by hand: compilers use
// few of the forms.
type attribute struct {
	attr, form uint64
	value      []byte // in the entry, or of implicit_const in the abbreviation
}

func u16(v uint16) []byte { return binary.LittleEndian.AppendUint16(nil, v) }
func u32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
func u64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }
func leb(v uint64) []byte { return binary.AppendUvarint(nil, v) }

// handmade is an image with one unit of version 5, below whose first entry stand
// the entries given.
type handmade struct {
	wide    bool // in the 64-bit format
	entries []handEntry
	more    map[string][]byte // other sections
}

type handEntry struct {
	tag        uint64
	attributes []attribute
}

// offset writes an offset of the format.
func (h *handmade) offset(v uint64) []byte {
	if h.wide {
		return u64(v)
	}
	return u32(uint32(v))
}

// unit wraps what follows a length.
func (h *handmade) unit(body []byte) []byte {
	if h.wide {
		return append(append(u32(0xffffffff), u64(uint64(len(body)))...), body...)
	}
	return append(u32(uint32(len(body))), body...)
}

// headerSize is the size of the header of the unit.
func (h *handmade) headerSize() int {
	if h.wide {
		return 12 + 2 + 1 + 1 + 8
	}
	return 4 + 2 + 1 + 1 + 4
}

// sections writes the image's sections. Strings are "zero", "one" and "two" at 0, 5
// and 9 of .debug_str, and numbers 0 to 2; addresses number 0 to 2 are 0x1000, 0x1100
// and 0x1200.
func (h *handmade) sections() map[string][]byte {
	bases := func(header int) []byte { return h.offset(uint64(header)) }
	first := handEntry{tagCompileUnit, []attribute{
		{attrStrOffsetsBase, formSecOffset, bases(len(h.unit(make([]byte, 4))))},
		{attrAddrBase, formSecOffset, bases(len(h.unit(make([]byte, 4))))},
		{attrRnglistsBase, formSecOffset, bases(len(h.unit(make([]byte, 8))))},
	}}
	var abbrev, entries []byte
	for k, e := range append([]handEntry{first}, h.entries...) {
		children := byte(0)
		if k == 0 {
			children = 1
		}
		abbrev = append(append(append(abbrev, leb(uint64(k+1))...), leb(e.tag)...), children)
		entries = append(entries, leb(uint64(k+1))...)
		for _, a := range e.attributes {
			abbrev = append(append(abbrev, leb(a.attr)...), leb(a.form)...)
			if a.form == formImplicitConst {
				abbrev = append(abbrev, a.value...)
			} else {
				entries = append(entries, a.value...)
			}
		}
		abbrev = append(abbrev, 0, 0)
	}
	body := append(append(u16(5), unitCompile, 8), h.offset(0)...)
	body = append(append(body, entries...), 0)
	table := func(values ...[]byte) []byte {
		return h.unit(append([]byte{5, 0, 8, 0}, slices.Concat(values...)...))
	}
	all := map[string][]byte{
		".debug_info": h.unit(body), ".debug_abbrev": append(abbrev, 0),
		".debug_str": []byte("zero\x00one\x00two\x00"), ".debug_line_str": []byte("line zero\x00line one\x00"),
		".debug_str_offsets": table(h.offset(0), h.offset(5), h.offset(9)),
		".debug_addr":        table(u64(0x1000), u64(0x1100), u64(0x1200)),
	}
	for name, data := range h.more {
		all[name] = data
	}
	return all
}

// read reads the image's only unit.
func (h *handmade) read(t *testing.T, opts Options) (*Data, *Contents) {
	t.Helper()
	im, err := object.Parse("handmade", elfWith(h.sections()))
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), im, opts)
	if err != nil {
		t.Fatal(err)
	}
	c := new(Contents)
	if err := d.Read(&d.Units()[0], c); err != nil {
		t.Error(err)
	}
	return d, c
}

// plain is a function that any reader understands.
func plain(name string, low uint64) handEntry {
	return handEntry{tagSubprogram, []attribute{
		{attrName, formString, append([]byte(name), 0)}, {attrLowPC, formAddr, u64(low)}, {attrHighPC, formData1, []byte{0x10}},
	}}
}

// samples are values of all forms, with offsets of 4 bytes.
var samples = []struct {
	form  uint64
	value []byte
}{
	{formAddr, u64(5)}, {formBlock2, []byte{2, 0, 1, 1}}, {formBlock4, []byte{3, 0, 0, 0, 1, 1, 1}}, {formData2, u16(0x101)},
	{formData4, u32(0x01010101)}, {formData8, u64(0x0101010101010101)}, {formString, []byte("text\x00")}, {formBlock, append(leb(200), make([]byte, 200)...)},
	{formBlock1, []byte{1, 1}}, {formData1, []byte{1}}, {formFlag, []byte{1}}, {formSdata, []byte{0xff, 0xff, 0x7f}}, {formStrp, nil},
	{formUdata, leb(1 << 40)}, {formRefAddr, nil}, {formRef1, []byte{1}}, {formRef2, u16(1)}, {formRef4, u32(1)}, {formRef8, u64(1)},
	{formRefUdata, leb(300)}, {formIndirect, append(leb(formUdata), leb(300)...)}, {formIndirect, append(leb(formBlock1), 2, 1, 1)}, {formSecOffset, nil},
	{formExprloc, []byte{3, 1, 1, 1}}, {formFlagPresent, []byte{}}, {formStrx, leb(200)}, {formAddrx, leb(200)}, {formRefSup4, u32(1)}, {formStrpSup, nil},
	{formData16, make([]byte, 16)}, {formLineStrp, nil}, {formRefSig8, u64(1)}, {formImplicitConst, []byte{0x81, 0x01}}, {formLoclistx, leb(200)},
	{formRnglistx, leb(200)}, {formRefSup8, u64(1)}, {formStrx1, []byte{1}}, {formStrx2, u16(1)}, {formStrx3, []byte{1, 1, 1}}, {formStrx4, u32(1)},
	{formAddrx1, []byte{1}}, {formAddrx2, u16(1)}, {formAddrx3, []byte{1, 1, 1}}, {formAddrx4, u32(1)},
	{formGNUAddrIndex, leb(200)}, {formGNUStrIndex, leb(200)}, {formGNURefAlt, nil}, {formGNUStrpAlt, nil},
}

func TestEveryFormIsSteppedOver(t *testing.T) {
	const vendors = 0x2abc // an attribute that nobody knows
	const variable = 0x34  // a tag without code
	for _, wide := range []bool{false, true} {
		for _, s := range samples {
			h := &handmade{wide: wide}
			value := s.value
			if value == nil {
				value = h.offset(1)
			}
			one := plain("first", 0x1000)
			one.attributes = slices.Insert(one.attributes, 1, attribute{vendors, s.form, value}) // in a function
			h.entries = []handEntry{one, {variable, []attribute{{vendors, s.form, value}, {vendors, formData1, []byte{7}}}}, plain("last", 0x1100)}
			d, c := h.read(t, Options{})
			var got string
			for _, f := range c.Functions {
				got += fmt.Sprintf("%s %x ", d.Bytes(f.Name), c.Ranges[f.Ranges.First])
			}
			if want := "first {1000 1010} last {1100 1110} "; got != want {
				t.Errorf("form %#x, 64-bit format %v: got %q, want %q", s.form, wide, got, want)
			}
		}
	}
}

func TestEveryFormOfANameIsRead(t *testing.T) {
	alt := elfWith((&handmade{more: map[string][]byte{".debug_str": []byte("no\x00alt one\x00")}}).sections())
	altImage, err := object.Parse("alt", alt)
	if err != nil {
		t.Fatal(err)
	}
	for _, wide := range []bool{false, true} {
		h := &handmade{wide: wide}
		for _, test := range []struct {
			form  uint64
			value []byte
			want  string
		}{
			{formString, []byte("inline\x00"), "inline"}, {formStrp, h.offset(5), "one"}, {formLineStrp, h.offset(10), "line one"},
			{formStrx, leb(1), "one"}, {formStrx1, []byte{2}, "two"}, {formStrx2, u16(1), "one"}, {formStrx3, []byte{2, 0, 0}, "two"}, {formStrx4, u32(1), "one"},
			{formGNUStrIndex, leb(2), "two"}, {formStrpSup, h.offset(3), "alt one"}, {formGNUStrpAlt, h.offset(3), "alt one"},
			{formIndirect, append(leb(formStrp), h.offset(9)...), "two"}, {formIndirect, append(leb(formString), "within\x00"...), "within"},
			{formStrx1, []byte{3}, ""}, {formStrp, h.offset(1 << 20), ""}, {formData4, u32(5), ""}, // nothing there, and no string
		} {
			one := plain("", 0x1000)
			one.attributes[0] = attribute{attrLinkageName, test.form, test.value}
			h.entries = []handEntry{one}
			d, c := h.read(t, Options{Alt: altImage})
			if len(c.Functions) != 1 || string(d.Bytes(c.Functions[0].Name)) != test.want {
				t.Errorf("form %#x: got %+v, want %q", test.form, c.Functions, test.want)
			}
		}
	}
}

func TestEveryFormOfAReferenceIsFollowed(t *testing.T) {
	alt := &handmade{entries: []handEntry{plain("in the other file", 0x1000)}}
	altImage, err := object.Parse("alt", elfWith(alt.sections()))
	if err != nil {
		t.Fatal(err)
	}
	for _, wide := range []bool{false, true} {
		h := &handmade{wide: wide}
		root := func(h *handmade) int { return h.headerSize() + 1 + 3*len(h.offset(0)) } // where the second entry is
		first, second := uint64(root(h)), uint64(root(alt))
		// A type unit, whose only entry is taken for a type.
		typed := append(append(append(u16(5), unitType, 8), h.offset(0)...), u64(0xfeed)...)
		typeAt := uint64(h.headerSize() + 8 + len(h.offset(0)))
		typed = append(typed, h.offset(typeAt)...)
		typed = append(append(append(typed, 2), "in a type unit\x00"...), u64(0)...)
		typed = append(typed, 0x10, 0)
		for _, test := range []struct {
			form  uint64
			value []byte
			want  string
		}{
			{formRef1, []byte{byte(first)}, "origin"}, {formRef2, u16(uint16(first)), "origin"}, {formRef4, u32(uint32(first)), "origin"},
			{formRef8, u64(first), "origin"}, {formRefUdata, leb(first), "origin"}, {formRefAddr, h.offset(first), "origin"},
			{formRefSup4, u32(uint32(second)), "in the other file"}, {formRefSup8, u64(second), "in the other file"}, {formGNURefAlt, h.offset(second), "in the other file"},
			{formRefSig8, u64(0xfeed), "in a type unit"}, {formIndirect, append(leb(formRefUdata), leb(first)...), "origin"},
			{formRefSig8, u64(0xbad), ""}, {formRef4, u32(0xffffffff), ""}, {formRefAddr, h.offset(1 << 30), ""}, {formRef1, []byte{1}, ""}, {formData4, u32(uint32(first)), ""},
		} {
			for _, attr := range []uint64{attrAbstractOrigin, attrSpecification} {
				one := plain("", 0x1100)
				one.attributes[0] = attribute{attr, test.form, test.value}
				h.entries = []handEntry{plain("origin", 0x1000), one}
				h.more = nil
				info := h.sections()[".debug_info"]
				h.more = map[string][]byte{".debug_info": append(info, h.unit(typed)...)}
				d, c := h.read(t, Options{Alt: altImage})
				if len(c.Functions) != 2 || string(d.Bytes(c.Functions[1].Name)) != test.want {
					t.Errorf("form %#x: got %+v, want %q", test.form, c.Functions, test.want)
				}
			}
		}
	}
}

func TestEveryFormOfAnAddressIsRead(t *testing.T) {
	for _, test := range []struct {
		low, high attribute
		want      Range
	}{
		{attribute{form: formAddr, value: u64(0x1000)}, attribute{form: formAddr, value: u64(0x1010)}, Range{0x1000, 0x1010}},
		{attribute{form: formAddrx, value: leb(1)}, attribute{form: formAddrx, value: leb(2)}, Range{0x1100, 0x1200}},
		{attribute{form: formAddrx1, value: []byte{1}}, attribute{form: formAddrx2, value: u16(2)}, Range{0x1100, 0x1200}},
		{attribute{form: formAddrx3, value: []byte{1, 0, 0}}, attribute{form: formAddrx4, value: u32(2)}, Range{0x1100, 0x1200}},
		{attribute{form: formGNUAddrIndex, value: leb(1)}, attribute{form: formData2, value: u16(0x234)}, Range{0x1100, 0x1334}},
		{attribute{form: formAddrx, value: leb(0)}, attribute{form: formData4, value: u32(0x20)}, Range{0x1000, 0x1020}},
		{attribute{form: formAddrx, value: leb(0)}, attribute{form: formData8, value: u64(0x20)}, Range{0x1000, 0x1020}},
		{attribute{form: formAddrx, value: leb(0)}, attribute{form: formUdata, value: leb(0x200)}, Range{0x1000, 0x1200}},
		{attribute{form: formAddrx, value: leb(0)}, attribute{form: formSdata, value: []byte{0x20}}, Range{0x1000, 0x1020}},
		{attribute{form: formAddrx, value: leb(0)}, attribute{form: formImplicitConst, value: []byte{0x30}}, Range{0x1000, 0x1030}},
		// Code ends at 0x11000, and what linkers drop is at 0, -1 and -2.
		{attribute{form: formAddr, value: u64(0x10ff0)}, attribute{form: formData4, value: u32(0x100)}, Range{0x10ff0, 0x11000}},
		{attribute{form: formAddr, value: u64(0)}, attribute{form: formData4, value: u32(0x1800)}, Range{}},
		{attribute{form: formAddr, value: u64(1<<64 - 1)}, attribute{form: formData4, value: u32(0x1800)}, Range{}},
		{attribute{form: formAddr, value: u64(1<<64 - 2)}, attribute{form: formData4, value: u32(0x1800)}, Range{}},
		{attribute{form: formAddr, value: u64(0x1000)}, attribute{form: formData4, value: u32(0)}, Range{}},
		{attribute{form: formAddr, value: u64(0x1000)}, attribute{form: formAddr, value: u64(0xfff)}, Range{}},
	} {
		one := plain("f", 0)
		test.low.attr, test.high.attr = attrLowPC, attrHighPC
		one.attributes[1], one.attributes[2] = test.low, test.high
		_, c := (&handmade{entries: []handEntry{one}}).read(t, Options{})
		var got Range
		if len(c.Ranges) == 1 && len(c.Functions) == 1 {
			got = c.Ranges[0]
		}
		if got != test.want || len(c.Ranges) > 1 {
			t.Errorf("forms %#x and %#x: got %x, want %x", test.low.form, test.high.form, c.Ranges, test.want)
		}
	}
}
