package dwarf

import (
	"bytes"
	"debug/elf"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// lineTable makes a line table of version 2 to 4 with two directories and three
// files, and the program given.
func lineTable(version byte, minInst, maxOps byte, opcodeBase byte, program []byte) []byte {
	header := []byte{minInst}
	if version >= 4 {
		header = append(header, maxOps)
	}
	header = append(header, 1, 0xfb, 14, opcodeBase) // line base -5, range 14
	lengths := []byte{0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 2, 3, 0}
	header = append(header, lengths[:opcodeBase-1]...)
	header = append(header, "dir\x00/abs\x00\x00a.c\x00\x00\x00\x00b.c\x00\x01\x00\x00c.c\x00\x02\x00\x00\x00"...)
	body := append([]byte{version, 0}, u32(uint32(len(header)))...)
	body = append(append(body, header...), program...)
	return append(u32(uint32(len(body))), body...)
}

// setAddress is the extended opcode.
func setAddress(addr uint64) []byte { return append([]byte{0, 9, lneSetAddress}, u64(addr)...) }

var endSequence = []byte{0, 1, lneEndSequence}

// lineImage makes an image with one unit, in /comp, whose line table it is.
func lineImage(table []byte) []byte {
	abbrev := []byte{1, tagCompileUnit, 0, attrStmtList, formSecOffset, attrCompDir, formString, 0, 0, 0}
	return elfWith(map[string][]byte{
		".debug_info": unit4(0, append([]byte{1, 0, 0, 0, 0}, "/comp\x00"...)), ".debug_abbrev": abbrev, ".debug_line": table,
	})
}

// readRows reads the rows of such an image.
func readRows(t *testing.T, data []byte) (*listing, error) {
	t.Helper()
	d := parseData(t, data)
	var c Contents
	err := d.Read(&d.Units()[0], &c)
	checkContents(t, d, &c)
	l := new(listing)
	l.add(d, &c)
	l.sort()
	return l, err
}

// linePrograms use what compilers seldom do.
var linePrograms = []struct {
	name       string
	opcodeBase byte
	program    []byte
}{
	{"special opcodes", 13, []byte{20, 33, 200, 255, 13, 14}},
	{"every standard opcode", 13, []byte{
		lnsCopy, lnsAdvancePC, 0x84, 0x01, lnsAdvanceLine, 0xe4, 0x00, lnsCopy, lnsSetFile, 2, lnsSetColumn, 0x80, 0x01, lnsNegateStmt, lnsSetBasicBlock,
		lnsConstAddPC, lnsCopy, lnsFixedAdvancePC, 0x34, 0x01, lnsSetPrologueEnd, lnsSetEpilogue, lnsSetISA, 0x85, 0x00, 20, lnsAdvanceLine, 0x7b, 30}},
	{"opcodes that are not known", 16, []byte{20, 13, 0x81, 0x01, 5, 14, 1, 2, 0x83, 0x01, 15, 30, 0, 4, 0x99, 1, 2, 3, 40, 50}},
	{"no opcodes of version 3", 10, []byte{20, 10, 11, 12, 13, 200}},
	{"files that are defined on the way", 13, slices.Concat([]byte{20, 0, 9, lneDefineFile}, []byte("new\x00\x01\x00\x00"), []byte{0x0, lnsSetFile, 4, 30, lnsSetFile, 3, 40, lnsSetFile, 1, 40})},
	{"a file that is not there", 13, []byte{20, lnsSetFile, 9, 30, lnsSetFile, 0, 40, lnsSetFile, 1, 50}},
	{"rows at one address", 13, []byte{20, lnsAdvanceLine, 7, lnsCopy, lnsSetFile, 2, lnsCopy, 50}},
	{"a second sequence, below", 13, slices.Concat([]byte{20, 30, 60}, endSequence, setAddress(0x1004), []byte{20, 90, 100}, endSequence, setAddress(0), []byte{20, 90})},
}

func TestLineProgramsSayTheSameToTheStandardLibrarysReader(t *testing.T) {
	for _, test := range linePrograms {
		for _, version := range []byte{2, 3, 4} {
			for _, minInst := range []byte{1, 4} {
				t.Run(fmt.Sprintf("%s, version %d, instructions of %d", test.name, version, minInst), func(t *testing.T) {
					program := slices.Concat(setAddress(0x2000), test.program, []byte{lnsAdvancePC, 4}, endSequence)
					data := lineImage(lineTable(version, minInst, 1, test.opcodeBase, program))
					got, err := readRows(t, data)
					if err != nil {
						t.Fatal(err)
					}
					want := yardRows(t, data)
					if a, b := got.lines(), want.lines(); len(b) < 2 || !slices.Equal(a, b) {
						t.Errorf("got\n%s\nwant\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
					}
				})
			}
		}
	}
}

// yardRows lists an image that has no functions.
func yardRows(t *testing.T, data []byte) *listing {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	d, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	return yardOf(t, d, []Range{{0x1000, 0x11000}})
}

func TestInstructionsOfSeveralOperationsShareAnAddress(t *testing.T) {
	// Three operations in an instruction of 16 bytes, as on IA-64: an address moves
	// on when the third is passed (DWARF 5 §6.2.5.1).
	program := slices.Concat(setAddress(0x2000), []byte{
		lnsCopy,
		lnsAdvancePC, 2, lnsAdvanceLine, 1, lnsCopy, // 2 operations: the same address
		lnsAdvancePC, 1, lnsAdvanceLine, 1, lnsCopy, // 3: the next one
		lnsAdvancePC, 7, lnsAdvanceLine, 1, lnsCopy, // 10: three on, and 1
		13 + 14*2 + 6,                             // a special opcode: 2 operations and line + 1
		lnsConstAddPC, lnsAdvanceLine, 1, lnsCopy, // (255-13)/14 = 17: five on, and 2
		lnsFixedAdvancePC, 8, 0, lnsAdvanceLine, 1, lnsCopy, // 8 bytes, back to the first
		lnsAdvancePC, 3,
	}, endSequence)
	got, err := readRows(t, lineImage(lineTable(4, 16, 3, 13, program)))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0x2000 /comp/a.c:2", "0x2010 /comp/a.c:3", "0x2030 /comp/a.c:4", "0x2040 /comp/a.c:5", "0x2090 /comp/a.c:6", "0x2098 /comp/a.c:7", "0x20a8 "}
	if !slices.Equal(got.lines(), want) {
		t.Errorf("got %q, want %q", got.lines(), want)
	}
}

func TestSequencesThatGoDownAreSorted(t *testing.T) {
	program := slices.Concat(setAddress(0x2010), []byte{20}, setAddress(0x2004), []byte{lnsAdvanceLine, 3, lnsCopy}, setAddress(0x2020), endSequence)
	got, err := readRows(t, lineImage(lineTable(3, 1, 1, 13, program)))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"0x2004 /comp/a.c:6", "0x2010 /comp/a.c:3", "0x2020 "}; !slices.Equal(got.lines(), want) {
		t.Errorf("got %q, want %q", got.lines(), want)
	}
}

func TestBadLineTablesAreTold(t *testing.T) {
	good := lineTable(3, 1, 1, 13, slices.Concat(setAddress(0x2000), []byte{20, 30, 90}, endSequence, setAddress(0x3000), []byte{20, 30, 90}, endSequence))
	for _, test := range []struct {
		name, says string
		damage     func(b []byte) []byte
		rows       int // that are left at least
	}{
		{"version", "header of a line table: version 9, want 2 to 5", func(b []byte) []byte { b[4] = 9; return b }, 0},
		{"length", "line table of 0xfffff bytes: unexpected end", func(b []byte) []byte { copy(b, u32(0xfffff)); return b }, 3},
		{"header length", "header of 0xffff bytes: unexpected end", func(b []byte) []byte { b[6], b[7] = 0xff, 0xff; return b }, 0},
		{"short header", "header of 0x2 bytes: unexpected end", func(b []byte) []byte { b[6] = 2; return b }, 0},
		{"line range", "line range of 0", func(b []byte) []byte { b[13] = 0; return b }, 0},
		{"end", "line program of the table at 0x0: unexpected end", func(b []byte) []byte { b = b[:len(b)-1]; copy(b, u32(uint32(len(b)-4))); return b }, 3},
		{"address", "address of 5 bytes", func(b []byte) []byte { b[bytes.LastIndex(b, []byte{0, 9, 2})+1] = 6; return b }, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := readRows(t, lineImage(test.damage(bytes.Clone(good))))
			if err == nil || !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), "dwarf: x: section .debug_line at 0x") {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
			if len(got.rows) < test.rows {
				t.Errorf("%d rows are left, want %d", len(got.rows), test.rows)
			}
		})
	}
}
