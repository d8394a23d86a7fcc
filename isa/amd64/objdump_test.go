package amd64

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

var wholeImages = flag.Bool("whole", false, "check all of the largest programs against objdump, not pieces: minutes")

const libc = "libc.so.6"

// findImage looks for a library or program where Linux distributions put them.
func findImage(name string) (string, error) {
	for _, dir := range []string{
		"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib", "/usr/bin", "/usr/local/bin",
	} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, os.ErrNotExist)
}

// textOf returns the section .text of a library or program and its address.
func textOf(t testing.TB, name string) (text []byte, addr uint64) {
	t.Helper()
	path, err := findImage(name)
	realtest.NeedThat(t, name, err)
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := f.Section(".text")
	if s == nil {
		t.Fatalf("%s has no .text", path)
	}
	text, err = s.Data()
	if err != nil {
		t.Fatal(err)
	}
	return text, s.Addr
}

// listed is one instruction as objdump prints it.
type listed struct {
	addr     uint64
	size     int
	mnemonic string // without prefixes
	prefixes bool   // there were prefix words before the mnemonic
	operands string
	comment  uint64 // address behind the #
	hasAddr  bool   // there is a comment with an address
}

// prefixWords are what objdump prints before a mnemonic, or alone where it makes nothing of what follows.
var prefixWords = map[string]bool{
	"rep": true, "repz": true, "repnz": true, "lock": true, "bnd": true, "notrack": true, "data16": true, "addr32": true,
	"cs": true, "ds": true, "es": true, "fs": true, "gs": true, "ss": true, "xacquire": true, "xrelease": true,
	"{vex}": true, "{vex3}": true, "{evex}": true,
}

// parseListing reads a line of objdump -d -w. It reports false for lines that are no instruction.
func parseListing(line string) (l listed, ok bool) {
	addr, rest, ok := strings.Cut(line, ":\t")
	if !ok {
		return l, false
	}
	var err error
	if l.addr, err = strconv.ParseUint(strings.TrimLeft(addr, " "), 16, 64); err != nil {
		return l, false
	}
	raw, text, _ := strings.Cut(rest, "\t")
	l.size = (len(strings.TrimRight(raw, " ")) + 1) / 3
	text, comment, found := strings.Cut(text, "#")
	if found {
		comment, _, _ = strings.Cut(strings.TrimSpace(comment), " ")
		l.comment, err = strconv.ParseUint(strings.TrimPrefix(comment, "0x"), 16, 64)
		l.hasAddr = err == nil
	}
	text = strings.TrimSpace(text)
	for {
		word, more, _ := strings.Cut(text, " ")
		word, _, _ = strings.Cut(word, ",") // branch hints: jne,pn
		if !prefixWords[word] && !strings.HasPrefix(word, "rex") {
			l.mnemonic, l.operands = word, strings.TrimSpace(more)
			return l, true
		}
		l.prefixes = true
		text = strings.TrimSpace(more)
	}
}

// kindOf says what an instruction with this mnemonic is.
func (l listed) kindOf() Kind {
	indirect := strings.HasPrefix(l.operands, "*")
	switch m := l.mnemonic; {
	case strings.HasPrefix(m, "ljmp"), strings.HasPrefix(m, "lcall"), strings.HasPrefix(m, "lret"), strings.HasPrefix(m, "iret"):
		return FarBranch
	case strings.HasPrefix(m, "sysret"), strings.HasPrefix(m, "sysexit"), m == "rsm", m == "eretu", m == "erets", m == "uiret":
		return FarBranch
	case strings.HasPrefix(m, "jmp"):
		if indirect {
			return IndirectJump
		}
		return Jump
	case strings.HasPrefix(m, "call"):
		if indirect {
			return IndirectCall
		}
		return Call
	case m == "jrcxz", m == "jecxz", strings.HasPrefix(m, "loop"):
		return ShortLoop
	case strings.HasPrefix(m, "j"):
		return CondJump
	case strings.HasPrefix(m, "ret"):
		return Return
	case m == "syscall", m == "sysenter", m == "int":
		return Syscall
	case m == "int3", m == "int1":
		return Breakpoint
	case strings.HasPrefix(m, "ud0"), strings.HasPrefix(m, "ud1"), m == "ud2":
		return Undefined
	case m == "hlt":
		return Halt
	case m == "xbegin":
		return XBegin
	}
	return Other
}

// objdumpResult counts what a comparison has seen.
type objdumpResult struct {
	instructions, memTargets, branches int
	bad, stray                         int // what objdump could not read: data
	refused                            int // what objdump reads and the processor would not: data too
	different                          int
}

// faults reports whether the manual says that an instruction is undefined though objdump prints it: one that has LOCK and
// does not change memory, names a segment register that there is not or loads CS, has REX before VEX, or was for the 287.
func (l listed) faults(code []byte) bool {
	return strings.Contains(l.operands, "%?") || strings.HasSuffix(l.operands, ",%cs") || l.mnemonic == "frstpm(287" ||
		bytes.IndexByte(code[:min(3, l.size)], 0xF0) >= 0 ||
		code[0]&0xF0 == 0x40 && (code[1] == 0xC4 || code[1] == 0xC5)
}

// compare compares our decoder with one line. text is the section at base.
func (r *objdumpResult) compare(t *testing.T, l listed, text []byte, base uint64) {
	t.Helper()
	if l.addr < base || l.addr-base+uint64(l.size) > uint64(len(text)) {
		t.Fatalf("objdump speaks of %#x, outside of .text", l.addr)
	}
	code := text[l.addr-base:]
	if l.mnemonic == "(bad)" || strings.Contains(l.operands, "(bad)") {
		r.bad++
		return
	}
	if l.mnemonic == "" || l.mnemonic == ".byte" {
		r.stray++ // a prefix alone or a byte before a symbol: objdump gave up on what follows
		return
	}
	r.instructions++
	differ := func(format string, args ...any) {
		r.different++
		if r.different <= 20 {
			t.Errorf("%#x: % x: %s %s: %s", l.addr, code[:l.size], l.mnemonic, l.operands, fmt.Sprintf(format, args...))
		}
	}
	at := 0
	if code[0] == 0x9B && l.size > 1 {
		at = 1 // objdump joins fwait with what follows
	}
	i, err := Decode(code[at:])
	if err != nil {
		if l.faults(code) {
			r.refused++
			return
		}
		differ("%v", err)
		return
	}
	if at+int(i.Len) != l.size {
		differ("length %d", at+int(i.Len))
		return
	}
	target, rip := i.MemTarget(l.addr + uint64(at))
	if strings.Contains(l.operands, "(%eip)") {
		l.comment = uint64(uint32(l.comment)) // objdump extends the sign, the processor does not
	}
	if rip != l.hasAddr || rip && target != l.comment {
		differ("RIP-relative operand %v %#x, objdump %v %#x", rip, target, l.hasAddr, l.comment)
	}
	if rip {
		r.memTargets++
	}
	if k := l.kindOf(); i.Kind != k {
		differ("kind %v, objdump %v", i.Kind, k)
	}
	if target, ok := i.Target(l.addr); ok {
		r.branches++
		first, _, _ := strings.Cut(l.operands, " ")
		if want, err := strconv.ParseUint(strings.TrimPrefix(first, "0x"), 16, 64); err != nil || target != want {
			differ("target %#x", target)
		}
	}
	if (l.mnemonic == "endbr64") != i.IsEndbr64() {
		differ("endbr64 %v", i.IsEndbr64())
	}
}

// compareRange runs objdump over the addresses from low up to high and compares every line.
func compareRange(t *testing.T, path string, text []byte, base, low, high uint64) (r objdumpResult) {
	t.Helper()
	cmd := exec.Command("objdump", "-d", "-w", "-j", ".text", "-M", "intel64", "--insn-width=16",
		fmt.Sprintf("--start-address=%#x", low), fmt.Sprintf("--stop-address=%#x", high), path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	realtest.NeedThat(t, "objdump", cmd.Start())
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if l, ok := parseListing(lines.Text()); ok && l.addr+uint64(l.size) <= high {
			r.compare(t, l, text, base)
		}
	}
	if err := errors.Join(lines.Err(), cmd.Wait()); err != nil {
		t.Fatalf("objdump %s: %v", path, err)
	}
	return r
}

func TestAgreesWithObjdump(t *testing.T) {
	const sample = 1 << 20 // bytes of text; of what is larger than libcrypto five pieces are taken
	for _, name := range []string{libc, "libm.so.6", "libstdc++.so.6", "libcrypto.so.3", "node"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, base := textOf(t, name)
			path, _ := findImage(name)
			end := base + uint64(len(text))
			var total objdumpResult
			add := func(low, high uint64) {
				r := compareRange(t, path, text, base, low, high)
				total.instructions += r.instructions
				total.memTargets += r.memTargets
				total.branches += r.branches
				total.bad += r.bad
				total.stray += r.stray
				total.refused += r.refused
				total.different += r.different
			}
			if *wholeImages || len(text) <= 4*sample {
				add(base, end)
			} else {
				// objdump needs to begin at an instruction, and a function's start is one.
				for _, low := range functionStarts(t, path, base, end-sample, 5) {
					add(low, low+sample)
				}
			}
			t.Logf("%d instructions, %d RIP-relative operands, %d direct branches; %d not read by objdump; %d refused; %d differences",
				total.instructions, total.memTargets, total.branches, total.bad+total.stray, total.refused, total.different)
			if pure := name != "node" && name != "libcrypto.so.3"; pure && total.bad+total.stray+total.refused != 0 {
				t.Errorf("%s has no data in its code, yet something was not read", name)
			}
			if total.instructions < 10000 {
				t.Errorf("only %d instructions were compared", total.instructions)
			}
		})
	}
}

// functionStarts returns n function addresses from low up to high, evenly spread over the symbol table.
func functionStarts(t *testing.T, path string, low, high uint64, n int) []uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if errors.Is(err, elf.ErrNoSymbols) {
		symbols, err = f.DynamicSymbols()
	}
	if err != nil {
		t.Fatal(err)
	}
	var starts []uint64
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value >= low && s.Value < high {
			starts = append(starts, s.Value)
		}
	}
	if len(starts) < n {
		t.Fatalf("%s: only %d functions", path, len(starts))
	}
	slices.Sort(starts)
	var picked []uint64
	for k := range n {
		picked = append(picked, starts[k*(len(starts)-1)/(n-1)])
	}
	return picked
}
