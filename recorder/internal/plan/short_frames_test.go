package plan

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// Assembly whose FDEs end before its code does: as clone3 of glibc, with and without another FDE behind; and what is as long as its FDE.
const shortFrames = `
	.text
	.p2align 4
forks:	.cfi_startproc
	endbr64
	mov	$-22, %eax
	test	%rdi, %rdi
	je	2f
	mov	$39, %eax
	.cfi_endproc
	syscall
	test	%rax, %rax
	jl	2f
	je	1f
	ret
1:	.cfi_startproc
	.cfi_undefined rip
	xor	%ebp, %ebp
	call	*%rdx
	mov	$60, %eax
	syscall
	.cfi_endproc
2:	.cfi_startproc
	neg	%eax
	or	$-1, %rax
	ret
	.cfi_endproc
	.p2align 4
alone:	.cfi_startproc
	endbr64
	mov	$39, %eax
	.cfi_endproc
	syscall
	test	%rax, %rax
	jl	3f
	ret
3:	neg	%eax
	or	$-1, %rax
	ret
	.p2align 4
whole:	.cfi_startproc
	endbr64
	lea	1(%rdi), %eax
	imul	%eax, %eax
	ret
	.cfi_endproc
	.p2align 4
ends:	.cfi_startproc
	endbr64
	push	%rax
	.cfi_adjust_cfa_offset 8
	call	abort@PLT
	.cfi_endproc
	ret
	.section .note.GNU-stack,"",@progbits
`

func TestFunctionsThatAreLongerThanTheirFrames(t *testing.T) {
	realtest.Need(t, realtest.AMD64, realtest.GCC)
	dir := t.TempDir()
	source, library := filepath.Join(dir, "short.s"), filepath.Join(dir, "short.so")
	if err := os.WriteFile(source, []byte(shortFrames), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-shared", "-nostdlib", "-Wl,--build-id", "-s", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	im := openTestImage(t, library)
	fns := planImage(t, im)
	sizes, exits := []uint64{}, []int{}
	for i := range fns {
		n := 0
		for _, s := range fns[i].Sites {
			n += count(s.Role != RoleEntry)
		}
		sizes, exits = append(sizes, fns[i].Size), append(exits, n)
	}
	if want := []uint64{0x2f, 0x18, 0xb, 0xa}; !slices.Equal(sizes, want) {
		t.Errorf("the sizes are %#x, want %#x", sizes, want)
	}
	if want := []int{2, 2, 1, 0}; !slices.Equal(exits, want) {
		t.Errorf("so many exits: %d, want %d", exits, want)
	}
}
