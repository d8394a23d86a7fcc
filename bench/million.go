package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// buildMillion makes a program of n functions, named million, that says a line and then calls them all, over and over.
func buildMillion(ctx context.Context, c config, n int) (path string, err error) {
	source, path := filepath.Join(c.dir, "million.s"), filepath.Join(c.dir, "million")
	f, err := os.Create(source)
	if err != nil {
		return "", err
	}
	out := bufio.NewWriter(f)
	err = writeMillion(out, n)
	if err = errors.Join(err, out.Flush(), f.Close()); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.Remove(source)) }()
	args := []string{"-O2", "-o", path, filepath.Join(c.source, "million.c"), source, fmt.Sprintf("-DCOUNT=%d", n)}
	if said, err := exec.CommandContext(ctx, "gcc", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("gcc: %w: %s", err, compilerComplaint(string(said)))
	}
	return path, nil
}

// writeMillion writes assembly: functions of four shapes, with unwind information, and a table of them.
func writeMillion(out io.Writer, n int) error {
	shapes := [...]func(i int) string{
		func(i int) string { return fmt.Sprintf("lea %d(%%rdi,%%rdi,2), %%rax\n\tret", i) },
		func(i int) string {
			return fmt.Sprintf("push %%rbx\n\t.cfi_adjust_cfa_offset 8\n\tmov %%rdi, %%rbx\n\ttest %%rdi, %%rdi\n\tje 1f\n\tadd $%d, %%rbx\n"+
				"1:\tmov %%rbx, %%rax\n\tpop %%rbx\n\t.cfi_adjust_cfa_offset -8\n\tret", i)
		},
		func(i int) string {
			return fmt.Sprintf("sub $8, %%rsp\n\t.cfi_adjust_cfa_offset 8\n\tcall many%d\n\tadd $8, %%rsp\n\t.cfi_adjust_cfa_offset -8\n\tret", i-1)
		},
		func(i int) string { return fmt.Sprintf("add $%d, %%rdi\n\tjmp many%d", i, i-1) },
	}
	const function = "\t.p2align 4\n\t.globl many%[1]d\n\t.type many%[1]d, @function\nmany%[1]d:\n\t.cfi_startproc\n\t%[2]s\n\t.cfi_endproc\n\t.size many%[1]d, .-many%[1]d\n"
	if _, err := io.WriteString(out, "\t.text\n"); err != nil {
		return err
	}
	for i := range n {
		if _, err := fmt.Fprintf(out, function, i, shapes[i%len(shapes)](i)); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(out, "\t.section .data.rel.ro, \"aw\"\n\t.globl many\n\t.p2align 3\nmany:\n"); err != nil {
		return err
	}
	for i := range n {
		if _, err := fmt.Fprintf(out, "\t.quad many%d\n", i); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, "\t.section .note.GNU-stack, \"\", @progbits\n")
	return err
}
