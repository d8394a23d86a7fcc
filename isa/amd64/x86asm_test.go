package amd64

import (
	"bufio"
	"errors"
	"os/exec"
	"testing"

	"golang.org/x/arch/x86/x86asm"
)

// misread is what x86asm makes of an image's code, checked against objdump.
type misread struct {
	instructions int
	refused      int            // it finds no instruction
	length       int            // it ends elsewhere
	absolute     int            // a RIP-relative operand is taken for an absolute address
	unsigned     int            // a negative displacement from RIP is not sign-extended
	of           map[string]int // of those refused, or of another length, by mnemonic
}

func (m *misread) all() int { return m.refused + m.length + m.absolute + m.unsigned }

// look checks x86asm against one line. text is the section at base.
func (m *misread) look(t *testing.T, l listed, text []byte, base uint64) {
	code := text[l.addr-base:]
	m.instructions++
	note := func(count *int, what string, got any) {
		if *count++; *count <= 3 {
			t.Logf("%#x: % x: %s %s: %s: %v", l.addr, code[:l.size], l.mnemonic, l.operands, what, got)
		}
	}
	i, err := x86asm.Decode(code, 64)
	switch {
	case err != nil:
		m.of[l.mnemonic]++
		note(&m.refused, "refused", err)
		return
	case i.Len != l.size:
		m.of[l.mnemonic]++
		note(&m.length, "length", i.Len)
		return
	case !l.hasAddr:
		return
	}
	for _, arg := range i.Args {
		mem, ok := arg.(x86asm.Mem)
		if !ok {
			continue
		}
		if mem.Base != x86asm.RIP {
			note(&m.absolute, "no RIP", mem)
		} else if l.addr+uint64(l.size)+uint64(mem.Disp) != l.comment {
			note(&m.unsigned, "displacement", mem)
		}
	}
}

// TestX86asmMisreads is why the decoder is our own: golang.org/x/arch misreads instructions of libc, and each of them, moved to a stub or
// stepped over to find the next, would end the target. When this finds none any more, docs/design/decoder.md is to be looked at again.
func TestX86asmMisreads(t *testing.T) {
	text, base := textOf(t, libc)
	path, _ := findImage(libc)
	cmd := exec.Command("objdump", "-d", "-w", "-j", ".text", "-M", "intel64", "--insn-width=16", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs := misread{of: map[string]int{}}
	var ours objdumpResult
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if l, ok := parseListing(lines.Text()); ok && l.mnemonic != "" && l.mnemonic != "(bad)" && l.mnemonic != ".byte" {
			theirs.look(t, l, text, base)
			ours.compare(t, l, text, base)
		}
	}
	if err := errors.Join(lines.Err(), cmd.Wait()); err != nil {
		t.Fatalf("objdump %s: %v", path, err)
	}
	t.Logf("of %d instructions x86asm misreads %d: %d refused, %d lengths, %d RIP-relative operands taken for absolute, %d not sign-extended",
		theirs.instructions, theirs.all(), theirs.refused, theirs.length, theirs.absolute, theirs.unsigned)
	t.Logf("refused, or of another length: %v", theirs.of)
	if theirs.instructions < 10000 {
		t.Errorf("only %d instructions were compared", theirs.instructions)
	}
	if theirs.all() == 0 {
		t.Error("x86asm misreads nothing: is this decoder still needed?")
	}
	if ours.different+ours.refused != 0 {
		t.Errorf("ours misreads %d and refuses %d", ours.different, ours.refused)
	}
}
