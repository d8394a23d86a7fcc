package cfi

import (
	"bufio"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// library returns the path of a shared library that gcc would link.
func library(t testing.TB, name string) string {
	t.Helper()
	out, err := exec.Command("gcc", "-print-file-name="+name).Output()
	realtest.NeedThat(t, "gcc", err)
	path := strings.TrimSpace(string(out))
	_, err = os.Stat(path)
	realtest.NeedThat(t, name, err)
	return path
}

// compile builds a C source and returns the path of the result.
func compile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	in, out := dir+"/in.c", dir+"/out"
	if err := os.WriteFile(in, []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	realtest.Need(t, realtest.GCC)
	msg, err := exec.Command("gcc", append(flags, "-o", out, in)...).CombinedOutput()
	if err != nil {
		realtest.NeedThat(t, "gcc "+strings.Join(flags, " "), fmt.Errorf("%w: %s", err, msg))
	}
	return out
}

// section reads a section with the standard library's reader and parses it.
func section(t testing.TB, path, name string) *Table {
	t.Helper()
	f, err := elf.Open(path)
	realtest.NeedThat(t, path, err)
	defer f.Close()
	s := f.Section(name)
	if s == nil {
		t.Fatalf("%s has no %s", path, name)
	}
	data, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{ByteOrder: f.ByteOrder, AddrSize: 8, Name: path}
	if f.Class == elf.ELFCLASS32 {
		opt.AddrSize = 4
	}
	if got := f.Section(".got.plt"); got != nil {
		opt.DataAddr = got.Addr
	}
	read := ParseEHFrame
	if name == ".debug_frame" {
		read = ParseDebugFrame
	}
	table, err := read(data, s.Addr, opt)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

var registerNumber = regexp.MustCompile(`r\d+ \((\w+)\)`)

// oracleFDE is a CIE or FDE as readelf prints it.
type oracleFDE struct {
	offset, start, end uint64
	cie                bool
	rows               []oracleRow
}

type oracleRow struct {
	loc  uint64
	cfa  string
	regs map[string]string
}

// readelfFrames runs readelf and hands over what it prints of one section.
func readelfFrames(t testing.TB, path, section string, visit func(oracleFDE)) {
	t.Helper()
	cmd := exec.Command("readelf", "-wN", "-wF", path) // -wN: not those of a separate debug file
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	realtest.NeedThat(t, "readelf (binutils)", err)
	parseFrames(t, out, section, visit)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("readelf: %v", err)
	}
}

func parseFrames(t testing.TB, r io.Reader, section string, visit func(oracleFDE)) {
	t.Helper()
	lines := bufio.NewScanner(r)
	var current *oracleFDE
	var columns []string
	wanted := false
	flush := func() {
		if current != nil {
			visit(*current)
		}
		current, columns = nil, nil
	}
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "Contents of the ") {
			flush()
			wanted = strings.HasPrefix(line, "Contents of the "+section+" ")
			continue
		}
		// A register that holds another is printed as "r2 (rcx)".
		fields := strings.Fields(registerNumber.ReplaceAllString(line, "$1"))
		switch {
		case !wanted || len(fields) == 0 || strings.Contains(line, "ZERO terminator"):
		case len(fields) > 3 && (fields[3] == "CIE" || fields[3] == "FDE"):
			flush()
			current = &oracleFDE{offset: hex(t, fields[0]), cie: fields[3] == "CIE"}
			if !current.cie {
				from, to, _ := strings.Cut(strings.TrimPrefix(fields[len(fields)-1], "pc="), "..")
				current.start, current.end = hex(t, from), hex(t, to)
			}
		case fields[0] == "LOC":
			columns = fields[2:]
		case current != nil && columns != nil && len(fields) == len(columns)+2:
			row := oracleRow{hex(t, fields[0]), fields[1], make(map[string]string)}
			for k, column := range columns {
				row.regs[column] = fields[k+2]
			}
			// Rows that cover nothing are replaced by the next.
			if n := len(current.rows); n > 0 && current.rows[n-1].loc == row.loc {
				current.rows = current.rows[:n-1]
			}
			current.rows = append(current.rows, row)
		}
	}
	flush()
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

func hex(t testing.TB, s string) uint64 {
	t.Helper()
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		t.Fatalf("readelf printed %q where a number should be", s)
	}
	return v
}

// The names of registers by DWARF number (System V AMD64 ABI §3.6.2, i386 ABI
// table 2.14).
var (
	amd64Names = []string{"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip"}
	arm64Names = slices.Concat(numbered("x", 31), []string{"sp"}, make([]string, 32), numbered("v", 32)) // DWARF for the Arm 64-bit Architecture §4.1
	i386Names  = []string{"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip"}
)

// hostNames are those of the machine's own processor, for which its libraries and compilers are.
func hostNames() NameFunc {
	if runtime.GOARCH == "arm64" {
		return namesOf(arm64Names)
	}
	return namesOf(amd64Names)
}

func numbered(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, prefix+strconv.Itoa(i))
	}
	return names
}

func namesOf(list []string) NameFunc {
	return func(reg uint32) string {
		if int(reg) < len(list) {
			return list[reg]
		}
		return ""
	}
}

// asReadelf writes a rule as readelf does.
func asReadelf(r Rule, names NameFunc) string {
	switch r.Kind {
	case SameValue:
		return "s"
	case Offset:
		return fmt.Sprintf("c%+d", r.Offset)
	case ValOffset:
		return fmt.Sprintf("v%+d", r.Offset)
	case Register:
		return names(uint32(r.Reg))
	case RegOffset:
		return fmt.Sprintf("%s%+d", names(uint32(r.Reg)), r.Offset)
	case Expression:
		return "exp"
	case ValExpression:
		return "vexp"
	}
	return "u"
}

// sameRow compares a row with readelf's. Columns that one of the two does not have
// are unspecified in it.
func sameRow(row *Row, want *oracleRow, names NameFunc) error {
	if cfa := strings.TrimPrefix(asReadelf(row.CFA, names), "v"); cfa != want.cfa {
		return fmt.Errorf("CFA %s, want %s", cfa, want.cfa)
	}
	left := len(want.regs)
	for _, reg := range row.Regs {
		name := names(reg.Reg)
		if reg.Reg == row.RAReg {
			name = "ra"
		}
		says, there := want.regs[name]
		if there {
			left--
		}
		if !there && reg.Kind != Undefined || there && says != asReadelf(reg.Rule, names) {
			return fmt.Errorf("%s: %s, want %q", name, asReadelf(reg.Rule, names), says)
		}
	}
	if left == 0 {
		return nil
	}
	for name, says := range want.regs {
		reg := row.RAReg
		for k := range uint32(len(arm64Names)) {
			if names(k) == name {
				reg = k
			}
		}
		if row.Reg(reg).Kind == Unspecified && says != "u" && says != "n" {
			return fmt.Errorf("%s: nothing, want %q", name, says)
		}
	}
	return nil
}

// compareWithReadelf checks every row of every FDE against readelf's.
func compareWithReadelf(t *testing.T, path, section string, table *Table, names NameFunc) {
	t.Helper()
	if err := table.Err(); err != nil {
		t.Error(err)
	}
	byOffset := make(map[uint64]*FDE)
	for k := range table.FDEs() {
		byOffset[table.FDEs()[k].Offset] = &table.FDEs()[k]
	}
	cies := make(map[uint64]oracleRow)
	fdes, rows := 0, 0
	var m Machine
	readelfFrames(t, path, section, func(want oracleFDE) {
		if want.cie {
			if len(want.rows) > 0 {
				cies[want.offset] = want.rows[0]
			}
			return
		}
		fdes++
		f := byOffset[want.offset]
		if f == nil {
			t.Errorf("no FDE at %#x", want.offset)
			return
		}
		if f.Start != want.start || f.End != want.end {
			t.Errorf("FDE at %#x: %#x..%#x, want %#x..%#x", want.offset, f.Start, f.End, want.start, want.end)
		}
		if len(want.rows) == 0 { // nothing but padding: the CIE's row holds
			row := cies[f.CIE.Offset]
			row.loc = f.Start
			want.rows = []oracleRow{row}
		}
		// The last row may cover nothing.
		if n := len(want.rows); want.rows[n-1].loc == f.End {
			want.rows = want.rows[:n-1]
		}
		err := m.Rows(f, func(row *Row) bool {
			rows++
			if len(want.rows) == 0 {
				t.Errorf("FDE at %#x: row at %#x that readelf has not", want.offset, row.Start)
				return false
			}
			if row.Start != want.rows[0].loc {
				t.Errorf("FDE at %#x: row at %#x, want one at %#x", want.offset, row.Start, want.rows[0].loc)
				return false
			}
			if err := sameRow(row, &want.rows[0], names); err != nil {
				t.Errorf("FDE at %#x: row at %#x: %v", want.offset, row.Start, err)
			}
			want.rows = want.rows[1:]
			if len(want.rows) == 0 && row.End != f.End {
				t.Errorf("FDE at %#x: the last row ends at %#x, want %#x", want.offset, row.End, f.End)
			}
			return true
		})
		if err != nil {
			t.Error(err)
		}
		if len(want.rows) > 0 {
			t.Errorf("FDE at %#x: no row at %#x", want.offset, want.rows[0].loc)
		}
	})
	if fdes != len(table.FDEs()) {
		t.Errorf("%d FDEs, want %d", len(table.FDEs()), fdes)
	}
	if rows == 0 {
		t.Error("nothing was compared")
	}
	t.Logf("%d FDEs, %d rows", fdes, rows)
}

// branches has early returns, which make the compiler remember and restore states,
// and frames of unknown size.
const branches = `
int g(int, char *);
int f(int n) { char s[n]; return n ? f(s[0]) + g(n - 1, s) : 0; }
int h(int n, int m) { if (n == m) return 1; if (g(n, 0) && g(m, 0)) return n; return h(m, n) * g(f(n), 0) + g(m + n, 0); }
`

func TestEveryRowAsReadelfPrintsIt(t *testing.T) {
	host, i386 := hostNames(), namesOf(i386Names)
	for _, name := range []string{"libc.so.6", "libcrypto.so.3", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1"} {
		t.Run(name, func(t *testing.T) {
			path := library(t, name)
			compareWithReadelf(t, path, ".eh_frame", section(t, path, ".eh_frame"), host)
		})
	}
	// Large programs, where they happen to be installed.
	for _, path := range []string{"/usr/bin/python3", "/usr/bin/node"} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			compareWithReadelf(t, path, ".eh_frame", section(t, path, ".eh_frame"), host)
		})
	}
	t.Run("i386", func(t *testing.T) {
		realtest.Need(t, realtest.AMD64)
		path := compile(t, branches, "-m32", "-O2", "-fPIC", "-shared", "-nostdlib")
		compareWithReadelf(t, path, ".eh_frame", section(t, path, ".eh_frame"), i386)
	})
	t.Run(".debug_frame", func(t *testing.T) {
		path := compile(t, branches, "-shared", "-nostdlib", "-fPIC", "-g", "-O1", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
		compareWithReadelf(t, path, ".debug_frame", section(t, path, ".debug_frame"), host)
	})
}
