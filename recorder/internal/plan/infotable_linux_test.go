package plan

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// A function as GHC makes it, with two places to which something returns, each with a table in front. The first is also reached from the
// entry, the second isn't.
const returnedInto = `
	.balign 8
f:
0:	leaq %[1]s(%%rip), %%rax
	movq %%rax, -16(%%rbp)
	addq $-16, %%rbp
	testb $7, %%bl
	jne 1f
	jmp *(%%rbx)
	.balign 8, 0x90
	.quad 0xcccc, %[2]s
1:	movq 8(%%rbp), %%rbx
	leaq 2f(%%rip), %%rax
	movq %%rax, -8(%%rbp)
	addq $-8, %%rbp
	jmp *(%%rbx)
	.balign 8, 0x90
	.quad 0x90, 30
2:	addq $24, %%rbp
	%[3]s
	jmp *0(%%rbp)
	.size f, .-f
	.globl h
	.type h, @function
h:	leaq 1(%%rdi), %%rax
	%[4]s
	ret
	.size h, .-h`

func TestTablesInsideAFunctionAreGoneRound(t *testing.T) {
	for _, c := range []struct{ name, label, kind, last, elsewhere, want string }{
		{"as GHC makes it", "1f", "0x1234_0000001e", "", "", "entry exit exit"},
		{"with a loop", "1f", "30", "jne 0b", "", "entry exit exit"}, // of which no call is left that it could be in
		{"with the last place reached from the entry", "1f", "30", "jne 1b", "", "entry exit exit"},
		{"no table of any kind", "1f", "0", "", "", "unresolved-jump"},
		{"no address that is returned to", "0b", "30", "", "", "undecodable"},
		{"a branch into the table", "1f", "30", "", "jz 0b+0x20", "undecodable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			im, f := planAssembly(t, fmt.Sprintf(returnedInto, c.label, strings.ReplaceAll(c.kind, "_", ""), c.last, c.elsewhere))
			if got := sitesOf(im, f); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// What is written into a Haskell program leaves each byte of its tables alone, and hides none of its code.
func TestTablesOfAHaskellProgramAreLeftAlone(t *testing.T) {
	realtest.Need(t, realtest.GHC)
	dir := t.TempDir()
	source := filepath.Join(dir, "p.hs")
	const program = "import qualified Data.Map as M\nmain = interact (show . M.toList . M.fromListWith (+) . map (\\w -> (length w, 1 :: Int)) . words)\n"
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "p")
	if msg, err := exec.Command(string(realtest.GHC), "-O1", "-outputdir", dir, "-o", out, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	im := openTestImage(t, out)
	all, traced := 0, 0
	written := map[uint64]string{} // by address
	for _, f := range planImage(t, im) {
		for _, s := range f.Sites {
			for a := s.Addr; a < s.End(); a++ {
				written[a] = f.Name
			}
			for a := s.Island; s.Island != 0 && a < s.Island+NearJump; a++ {
				written[a] = f.Name
			}
		}
		if !strings.HasSuffix(f.Name, "_info") {
			continue
		}
		all++
		if f.Tier != TierNone {
			traced++
		}
	}
	if traced*4 < all*3 {
		t.Errorf("%d functions of %d can be probed", traced, all)
	}
	tables := 0
	for i := range im.texts {
		text := &im.texts[i]
		for k := 0; k+8 <= len(text.data); k++ {
			if !bytes.HasPrefix(text.data[k:], []byte{0x48, 0xC7, 0x45}) { // movq $to, x(%rbp), which is the stack
				continue
			}
			to := uint64(binary.LittleEndian.Uint32(text.data[k+4:]))
			if to < text.start+tableSize || to >= text.end || to%8 != 0 {
				continue
			}
			tables++
			for a := to - tableSize; a < to; a++ {
				if written[a] != "" {
					t.Errorf("%s: a site takes %#x, in the table in front of %#x", written[a], a, to)
				}
			}
		}
	}
	if tables < 1000 {
		t.Errorf("only %d tables were found", tables)
	}
}
