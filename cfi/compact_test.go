package cfi

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// machSource has frames of every kind that compact encodings know.
const machSource = `
extern int g(int *, ...);
int leaf(int a) { return a * 3; }
int one(int a) { return g(0, a) + a; }
int two(int a, int b, int c) { int x[10]; g(x, a); return g(x, b) + x[a] + a + b + c; }
int three(int a, int b, int c, int d) { g(0, a); g(0, b); g(0, c); return a ^ b ^ c ^ d; }
int many(int a, int b, int c, int d, int e, int f) { g(0, a); g(0, b); g(0, c); g(0, d); g(0, e); g(0, f); return a ^ b ^ c ^ d ^ e ^ f; }
int large(int a) { int x[1000]; g(x, a); return x[a]; }
int huge(int a, int b, int c) { int x[100000]; g(x, a); g(x, b); g(x, c); return x[a] + b + c; }
int varying(int n) { int x[n]; g(x, n); return x[0]; }
double floating(double a, double b) { g(0); g(0); return a * b; }
`

// machTarget is a Mach-O architecture.
type machTarget struct {
	arch            object.Arch
	triple, ld, min string
}

var machTargets = []machTarget{
	{object.AMD64, "x86_64-apple-macos10.15", "x86_64", "10.15"},
	{object.ARM64, "arm64-apple-macos11", "arm64", "11.0"},
}

func run(t testing.TB, c realtest.Capability, args ...string) []byte {
	t.Helper()
	path, err := c.Find()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, args...).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", c, strings.Join(args, " "), err)
	}
	return out
}

// machLibraries links the same code twice: with compact unwind information and, to
// check it against, with __eh_frame for all functions.
func machLibraries(t testing.TB, m machTarget, flags ...string) (compact, frames string) {
	realtest.Need(t, realtest.Clang, realtest.LD64, realtest.LLVMObjcopy)
	dir := t.TempDir()
	in, obj, bare := filepath.Join(dir, "in.c"), filepath.Join(dir, "in.o"), filepath.Join(dir, "bare.o")
	if err := os.WriteFile(in, []byte(machSource), 0o666); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-target", m.triple, "-femit-dwarf-unwind=always", "-fexceptions", "-fno-stack-protector", "-ffreestanding", "-nostdinc", "-c", in, "-o", obj}, flags...)
	run(t, realtest.Clang, args...)
	run(t, realtest.LLVMObjcopy, "--remove-section", "__LD,__compact_unwind", obj, bare)
	link := func(from, name string) string {
		out := filepath.Join(dir, name)
		run(t, realtest.LD64, "-arch", m.ld, "-platform_version", "macos", m.min, m.min, "-dylib", "-undefined", "dynamic_lookup", "-install_name", "@rpath/x.dylib", "-o", out, from)
		return out
	}
	return link(obj, "compact.dylib"), link(bare, "frames.dylib")
}

// openMach reads both kinds of tables of a library.
func openMach(t testing.TB, path string) (*CompactTable, *Table) {
	t.Helper()
	im, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Close() })
	data, addr, err := im.EHFrame()
	if err != nil {
		t.Fatal(err)
	}
	frames, err := ParseEHFrame(data, addr, Options{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := frames.Err(); err != nil {
		t.Fatal(err)
	}
	data, _, err = im.UnwindInfo()
	if err != nil {
		t.Fatal(err)
	}
	if data == nil {
		return nil, frames
	}
	compact, err := ParseUnwindInfo(data, CompactOptions{Arch: im.Arch, Base: im.BaseAddr(), Name: path, EHFrame: frames, Code: im.ReadAddr})
	if err != nil {
		t.Fatal(err)
	}
	return compact, frames
}

// TestCompactRowsAreThoseOfDWARF checks the row of each encoding against the last
// one that the same compiler wrote as DWARF for the same code: Apple's targets
// describe no epilogue, so that is the body's.
func TestCompactRowsAreThoseOfDWARF(t *testing.T) {
	for _, m := range machTargets {
		for _, flags := range [][]string{{"-O2", "-fomit-frame-pointer"}, {"-O1", "-fno-omit-frame-pointer"}} {
			if m.arch == object.ARM64 && flags[0] == "-O1" {
				continue // clang writes no DWARF there: see the next test
			}
			t.Run(m.ld+strings.Join(flags, ""), func(t *testing.T) {
				compactPath, framesPath := machLibraries(t, m, flags...)
				compact, escapes := openMach(t, compactPath)
				_, frames := openMach(t, framesPath)
				regs, _ := RegistersOf(m.arch)
				compared, escaped := 0, 0
				for k := range frames.FDEs() {
					f := &frames.FDEs()[k]
					e, ok, err := compact.Find(f.End - 1)
					if err != nil || !ok {
						t.Errorf("no entry for %#x: %v", f.End-1, err)
						continue
					}
					var want Row
					if err := f.Rows(func(r *Row) bool { want = r.Clone(); return true }); err != nil {
						t.Fatal(err)
					}
					var got Row
					if _, dwarf := compact.DWARF(&e); dwarf {
						escaped++
						fde, err := compact.FDE(&e)
						if err != nil || fde.Start != f.Start || len(escapes.FDEs()) == 0 {
							t.Errorf("%#x: FDE %+v, %v", f.Start, fde, err)
							continue
						}
						if got, err = fde.RowAt(fde.End - 1); err != nil {
							t.Fatal(err)
						}
					} else {
						compared++
						if got, err = compact.Row(&e); err != nil {
							t.Error(err)
							continue
						}
					}
					if got.Format(regs.Name) != want.Format(regs.Name) {
						t.Errorf("%#x, encoding %#x:\n got %s\nwant %s", f.Start, e.Encoding, got.Format(regs.Name), want.Format(regs.Name))
					}
				}
				if compared == 0 || compared+escaped < 8 {
					t.Errorf("only %d and %d functions compared", compared, escaped)
				}
				t.Logf("%d encodings and %d escapes to DWARF are right", compared, escaped)
			})
		}
	}
}

var cfiDirective = regexp.MustCompile(`^\.cfi_(def_cfa|offset) ([wb])(\d+), (-?\d+)$`)

// TestCompactFramesOfARM64AreThoseOfTheAssembly holds encodings with a frame record
// against the directives that the compiler wrote into the assembly.
func TestCompactFramesOfARM64AreThoseOfTheAssembly(t *testing.T) {
	m := machTargets[1]
	flags := []string{"-O1", "-fno-omit-frame-pointer"}
	path, _ := machLibraries(t, m, flags...)
	compact, _ := openMach(t, path)
	in := filepath.Join(t.TempDir(), "in.c")
	if err := os.WriteFile(in, []byte(machSource), 0o666); err != nil {
		t.Fatal(err)
	}
	asm := run(t, realtest.Clang, append(flags, "-target", m.triple, "-fexceptions", "-fno-stack-protector", "-ffreestanding", "-nostdinc", "-S", in, "-o", "-")...)
	want := map[string]*Row{}
	var row *Row
	lines := bufio.NewScanner(bytes.NewReader(asm))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if name, _, ok := strings.Cut(line, ":"); ok && strings.HasPrefix(name, "_") {
			row = &Row{RAReg: 30}
			want[name] = row
		}
		d := cfiDirective.FindStringSubmatch(line)
		if d == nil {
			continue
		}
		reg, _ := strconv.Atoi(d[3])
		off, _ := strconv.ParseInt(d[4], 10, 64)
		if d[2] == "b" { // a vector register
			reg += 64
		}
		if d[1] == "def_cfa" {
			row.CFA = Rule{Kind: RegOffset, Reg: uint16(reg), Offset: off}
		} else {
			row.saved(uint32(reg), off)
		}
	}
	im, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	symbols, err := im.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, s := range symbols {
		row := want[s.Name]
		e, ok, err := compact.Find(s.Addr)
		if row == nil || row.CFA.Kind == Unspecified || !s.IsFunc() || err != nil || !ok {
			continue
		}
		compared++
		if got, err := compact.Row(&e); err != nil || got.Format(nil) != row.Format(nil) {
			t.Errorf("%s, encoding %#x:\n got %s, %v\nwant %s", s.Name, e.Encoding, got.Format(nil), err, row.Format(nil))
		}
	}
	if compared < 5 {
		t.Errorf("only %d functions compared", compared)
	}
}

var objdumpEntry = regexp.MustCompile(`^\[\d+\]: function offset=0x([0-9a-f]+), encoding(?:\[\d+\])?=0x([0-9a-f]+)$`)

// TestCompactEntriesAreThoseOfObjdump links enough functions for several pages.
func TestCompactEntriesAreThoseOfObjdump(t *testing.T) {
	realtest.Need(t, realtest.Clang, realtest.LD64, realtest.LLVMObjdump)
	for _, m := range machTargets {
		t.Run(m.ld, func(t *testing.T) {
			dir := t.TempDir()
			in, obj, lib := filepath.Join(dir, "in.c"), filepath.Join(dir, "in.o"), filepath.Join(dir, "x.dylib")
			var b strings.Builder
			b.WriteString("int g(int *, ...);\n")
			for k := range 1200 { // more than a page takes, with many encodings
				fmt.Fprintf(&b, "int f%d(int a, int b) { int x[%d]; g(x, a); return x[b]; }\n", k, 5+k*7%1900)
			}
			if err := os.WriteFile(in, []byte(b.String()), 0o666); err != nil {
				t.Fatal(err)
			}
			run(t, realtest.Clang, "-target", m.triple, "-O0", "-fomit-frame-pointer", "-funwind-tables", "-fno-stack-protector", "-ffreestanding", "-nostdinc", "-c", in, "-o", obj)
			run(t, realtest.LD64, "-arch", m.ld, "-platform_version", "macos", m.min, m.min, "-dylib", "-undefined", "dynamic_lookup", "-install_name", "@rpath/x.dylib", "-o", lib, obj)
			compact, _ := openMach(t, lib)
			var got []string
			if err := compact.Entries(func(e CompactEntry) bool {
				got = append(got, fmt.Sprintf("%#x %#08x", e.Start-compact.opt.Base, e.Encoding))
				if found, ok, err := compact.Find(e.Start); err != nil || ok != (e.Encoding != 0) || ok && found != e {
					t.Fatalf("Find(%#x) = %+v, %v, %v, want %+v", e.Start, found, ok, err, e)
				}
				return true
			}); err != nil {
				t.Fatal(err)
			}
			var want []string
			lines := bufio.NewScanner(bytes.NewReader(run(t, realtest.LLVMObjdump, "--macho", "--unwind-info", lib)))
			for lines.Scan() {
				if f := objdumpEntry.FindStringSubmatch(strings.TrimSpace(lines.Text())); f != nil {
					at, _ := strconv.ParseUint(f[1], 16, 32)
					enc, _ := strconv.ParseUint(f[2], 16, 32)
					want = append(want, fmt.Sprintf("%#x %#08x", at, enc))
				}
			}
			if len(want) < 1000 || strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%d entries, objdump has %d; or they differ", len(got), len(want))
			}
		})
	}
}

// handTable is a __unwind_info of one regular page: personality 1 at 0x4000, LSDA
// of the function at 0x1010, then one entry each.
func handTable(encodings ...uint32) []byte {
	put := binary.LittleEndian.AppendUint32
	var b []byte
	const personality, index, lsda, pageAt = 28, 32, 56, 64
	for _, v := range []uint32{1, 28, 0, personality, 1, index, 2, 0x4000,
		0x1000, pageAt, lsda, 0x2000, 0, lsda + 8, 0x1010, 0x5000, pageRegular} {
		b = put(b, v)
	}
	b = binary.LittleEndian.AppendUint16(b, 8)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(encodings)))
	for k, enc := range encodings {
		b = put(put(b, 0x1000+0x10*uint32(k)), enc)
	}
	return b
}

func TestCompactEntriesNamePersonalityAndLSDA(t *testing.T) {
	table, err := ParseUnwindInfo(handTable(0x01000000, 0x51000000, 0x21000000), CompactOptions{Arch: object.AMD64, Base: 0x100000, Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	e, ok, err := table.Find(0x101014)
	if err != nil || !ok || e.Personality != 0x104000 || e.LSDA != 0x105000 || e.Start != 0x101010 || e.End != 0x101020 {
		t.Errorf("entry %+v, %v, %v", e, ok, err)
	}
	if _, _, err := table.Find(0x101024); err == nil || !strings.Contains(err.Error(), "personality 2 does not exist") {
		t.Errorf("error %v", err)
	}
	if e, ok, err := table.Find(0x102000); ok || err != nil {
		t.Errorf("behind the code: %+v, %v", e, err)
	}
}

func TestDamagedCompactTablesAreErrors(t *testing.T) {
	good := handTable(0x01000000, 0x51000000)
	opt := CompactOptions{Arch: object.AMD64, Base: 0, Name: "x"}
	for cut := range good {
		table, err := ParseUnwindInfo(good[:cut], opt)
		if err != nil {
			continue
		}
		count := 0
		if err := table.Entries(func(CompactEntry) bool { count++; return true }); err == nil && count == 2 {
			t.Errorf("cut at %d: no error", cut)
		}
	}
	for _, enc := range []uint32{0x00000001, 0x01000006, 0x01000007, 0x02001c00, 0x020007ff, 0x03000000, 0x05000000} {
		table, err := ParseUnwindInfo(handTable(enc), opt)
		if err != nil {
			t.Fatal(err)
		}
		e, _, err := table.Find(0x1000)
		if err != nil {
			t.Fatal(err)
		}
		if row, err := table.Row(&e); err == nil {
			t.Errorf("encoding %#x gives %s", enc, row.Format(nil))
		}
	}
	if _, err := ParseUnwindInfo(good, CompactOptions{Arch: object.PPC}); err == nil {
		t.Error("PowerPC is accepted")
	}
}

// TestPermutationsAreAllDifferent makes every order in which registers can be pushed.
func TestPermutationsAreAllDifferent(t *testing.T) {
	orders := 1
	for count := range 7 {
		if count > 0 {
			orders *= 7 - count
		}
		seen := map[[6]uint32]bool{}
		for number := range uint32(orders) {
			order, err := permutation(count, number)
			if err != nil {
				t.Fatalf("%d of %d: %v", number, count, err)
			}
			seen[order] = true
		}
		if len(seen) != orders {
			t.Errorf("%d registers: %d orders, want %d", count, len(seen), orders)
		}
		if _, err := permutation(count, 1<<10-1); err == nil && count > 0 && count < 6 {
			t.Errorf("%d registers: a number that is too large gives an order", count)
		}
	}
}

func FuzzUnwindInfo(f *testing.F) {
	f.Add(handTable(0x01000000, 0x51000000, 0x02081800), uint32(0x1010), false)
	f.Add(handTable(0x04000011, 0x02002001, 0x03000010), uint32(0x1020), true)
	f.Fuzz(func(t *testing.T, data []byte, pc uint32, arm bool) {
		opt := CompactOptions{Arch: object.AMD64, Base: 0x1000}
		if arm {
			opt.Arch = object.ARM64
		}
		table, err := ParseUnwindInfo(data, opt)
		if err != nil {
			return
		}
		if e, ok, err := table.Find(uint64(pc)); err == nil && ok && (uint64(pc) < e.Start || uint64(pc) >= e.End) {
			t.Errorf("Find(%#x) = %+v", pc, e)
		}
		count := 0
		_ = table.Entries(func(e CompactEntry) bool {
			count++
			if r, err := table.Row(&e); err == nil && r.CFA.Kind != RegOffset {
				t.Errorf("encoding %#x has CFA %v", e.Encoding, r.CFA)
			}
			return true
		})
		if count > len(data) {
			t.Errorf("%d entries in %d bytes", count, len(data))
		}
	})
}
