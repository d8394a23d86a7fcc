package arm64

import (
	"bufio"
	"encoding/binary"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

var randomWords = flag.Int("words", 200_000, "how many random words to hold against each disassembler; 10000000 take some minutes")

// listed is one word as a disassembler prints it.
type listed struct {
	word     uint32
	pc       uint64
	known    bool
	mnemonic string
	operands []string // without the comment; what stands in brackets is one of them
}

// disassembled returns words as LLVM prints them, with all of the architecture's extensions that it knows.
func disassembled(t *testing.T, words []uint32) []listed {
	t.Helper()
	realtest.Need(t, realtest.LLVMObjdump, realtest.LLVMObjcopy)
	object := filepath.Join(t.TempDir(), "words.o")
	runTool(t, "llvm-objcopy-19", "-I", "binary", "-O", "elf64-littleaarch64", "--rename-section", ".data=.text,code", wordsFile(t, words), object)
	return lines(t, words, exec.Command("llvm-objdump-19", "-d", "--mattr=+all", "--no-print-imm-hex", object))
}

// wordsFile writes words to a file.
func wordsFile(t *testing.T, words []uint32) string {
	t.Helper()
	var raw []byte
	for _, w := range words {
		raw = binary.LittleEndian.AppendUint32(raw, w)
	}
	name := filepath.Join(t.TempDir(), "words.bin")
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func runTool(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// lines reads a disassembler's listing of words, in which each has to be in its place.
func lines(t *testing.T, words []uint32, cmd *exec.Cmd) []listed {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	realtest.NeedThat(t, cmd.Path, cmd.Start())
	all := make([]listed, 0, len(words))
	scan := bufio.NewScanner(out)
	for scan.Scan() {
		l, ok := parseListing(scan.Text())
		if !ok {
			continue
		}
		if len(all) == len(words) || l.word != words[len(all)] || l.pc != uint64(len(all))*Len {
			t.Fatalf("%s: line %q is not word %d", cmd.Path, scan.Text(), len(all))
		}
		all = append(all, l)
	}
	if err := errors.Join(scan.Err(), cmd.Wait()); err != nil {
		t.Fatalf("%s: %v", cmd.Path, err)
	}
	if len(all) != len(words) {
		t.Fatalf("%s lists %d of %d words", cmd.Path, len(all), len(words))
	}
	return all
}

// parseListing reads a line of llvm-objdump -d or objdump -d. It reports false for lines that are no instruction.
func parseListing(line string) (l listed, ok bool) {
	addr, rest, ok := strings.Cut(line, ":")
	if !ok {
		return l, false
	}
	var err error
	if l.pc, err = strconv.ParseUint(strings.TrimSpace(addr), 16, 64); err != nil {
		return l, false
	}
	raw, text, ok := strings.Cut(strings.TrimSpace(rest), "\t")
	if !ok {
		return l, false
	}
	word, err := strconv.ParseUint(strings.TrimSpace(raw), 16, 32)
	if err != nil {
		return l, false
	}
	l.word = uint32(word)
	text, _, _ = strings.Cut(text, "//")
	mnemonic, operands, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(text, "\t", " ")), " ")
	l.known = !strings.HasPrefix(mnemonic, "<unknown>") && !strings.HasPrefix(mnemonic, ".inst")
	l.mnemonic, l.operands = mnemonic, splitOperands(operands)
	return l, true
}

// splitOperands divides at commas that aren't in brackets or braces. An exclamation mark stays with its operand.
func splitOperands(text string) (parts []string) {
	depth, from := 0, 0
	for at, c := range text {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, strings.TrimSpace(text[from:at]))
				from = at + 1
			}
		}
	}
	if rest := strings.TrimSpace(text[from:]); rest != "" {
		parts = append(parts, rest)
	}
	return parts
}

// corners are regions of few words in which each bit decides what a word is.
var corners = []struct{ fixed, random uint32 }{
	{0xD503001F, 0x1FFFE0},   // hints, barriers
	{0xD503201F, 0x000FE0},   // hints
	{0xD500401F, 0x070FE0},   // PSTATE
	{0xD5000000, 0x7FFFFF},   // system
	{0xD4000000, 0xE0001F},   // exceptions
	{0xD61F0000, 0x1E007FF},  // branches to registers
	{0xD61F0800, 0x1E007FF},  // the same with signed addresses
	{0xD65F0BFF, 0x1A0041F},  // returns
	{0xDAC10000, 0xFFFF},     // signing
	{0xDAC183FE, 0x7C00},     // signing by PC
	{0xF380001F, 0x7FFFE0},   // authenticating by PC
	{0x5500001F, 0xFFFFE0},   // returning by PC
	{0x5AC00000, 0xA000FFFF}, // one source
	{0x1AC00000, 0xE01FFFFF}, // two sources
	{0x1A000000, 0xE01FFFFF}, // carries, flags
	{0x18000000, 0xC4FFFFFF}, // literals, what is newer
	{0x19000000, 0xC4FFFFFF}, //
	{0x38200000, 0xC0DFFFFF}, // atomics
	{0x08000000, 0xC0FFFFFF}, // exclusives
	{0x0D000000, 0x40FFFFFF}, // structures
	{0x1E200000, 0xDFFFFF},   // scalar floating point
	{0x1E601008, 0xDFFFFF},   // the same
}

// randomOf returns n words. Half of them are random throughout; the rest are of the base instruction set, with
// registers and other fields at their ends, where validity is decided.
func randomOf(n int, seed uint64) []uint32 {
	r := rand.New(rand.NewPCG(seed, 64))
	words := make([]uint32, n)
	for k := range words {
		w := r.Uint32()
		if k&1 != 0 {
			// Neither SVE, SME nor reserved.
			w = w&^(0xF<<25) | []uint32{8, 9, 10, 11, 4, 6, 12, 14, 5, 13, 7, 15}[r.IntN(12)]<<25
			for _, low := range []uint{0, 5, 10, 16} {
				switch r.IntN(4) {
				case 0:
					w |= 31 << low
				case 1:
					w &^= 31 << low
				}
			}
			if c := corners[r.IntN(len(corners))]; r.IntN(4) == 0 {
				w = c.fixed | w&c.random
			}
		}
		words[k] = w
	}
	return words
}

// inBatches calls check for n random words, some of them at a time.
func inBatches(t *testing.T, seed uint64, check func(words []uint32)) {
	const batch = 500_000
	for left := *randomWords; left > 0; left -= batch {
		check(randomOf(min(left, batch), seed+uint64(left)))
	}
}

func TestAgreesWithLLVM(t *testing.T) {
	var c comparison
	inBatches(t, 1, func(words []uint32) {
		for _, l := range disassembled(t, words) {
			c.compare(t, l)
		}
	})
	c.report(t)
}

// TestAgreesWithObjdump asks GNU's disassembler, which knows the architecture up to another year: what it knows has to be
// known here, of the same kind and with the same target.
func TestAgreesWithObjdump(t *testing.T) {
	realtest.Need(t, realtest.ObjdumpARM64)
	var c comparison
	inBatches(t, 2, func(words []uint32) {
		cmd := exec.Command("aarch64-linux-gnu-objdump", "-D", "-b", "binary", "-m", "aarch64", "-M", "no-notes", wordsFile(t, words))
		for _, l := range lines(t, words, cmd) {
			c.compareFlow(t, l)
		}
	})
	c.report(t)
}
