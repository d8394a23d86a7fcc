package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/cfi/lint"
	"github.com/callreel/callreel/internal/realtest"
)

// assembleCFI builds a library of two functions: right has correct call frame information, wrong forgets a push.
func assembleCFI(t *testing.T) string {
	t.Helper()
	realtest.Need(t, realtest.GCC)
	dir := t.TempDir()
	source, out := filepath.Join(dir, "x.S"), filepath.Join(dir, "x.so")
	text := `
	.text
	.globl right
	.type right, @function
right:
	.cfi_startproc
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	mov %rdi, %rbx
	pop %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size right, .-right
	.globl wrong
	.type wrong, @function
wrong:
	.cfi_startproc
	push %rdi
	pop %rax
	ret
	.cfi_endproc
	.size wrong, .-wrong
	.section .note.GNU-stack,"",@progbits
`
	if err := os.WriteFile(source, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command("gcc", "-shared", "-nostdlib", "-o", out, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, said)
	}
	return out
}

// addressOf returns a symbol's address by nm.
func addressOf(t *testing.T, path, name string) uint64 {
	t.Helper()
	out, err := exec.Command("nm", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(out), "\n") {
		var at uint64
		var kind, symbol string
		if n, _ := fmt.Sscanf(line, "%x %s %s", &at, &kind, &symbol); n == 3 && symbol == name {
			return at
		}
	}
	t.Fatalf("no symbol %s in\n%s", name, out)
	return 0
}

func TestCFILintEndsWithCode1OnFindings(t *testing.T) {
	path := assembleCFI(t)
	at := address(addressOf(t, path, "wrong") + 1)
	a := callreel("", "cfi", "lint", path)
	want := path + ":" + at + ": cfa in wrong: says cfa=rsp+8, truth is cfa=rsp+16; mend with .cfi_adjust_cfa_offset 8\n" + path + ": 1 finding in 2 FDEs of .eh_frame\n"
	if a.code != exitFailed || a.stdout != want || a.stderr != "" {
		t.Errorf("code %d, %q and %q, want %q", a.code, a.stdout, a.stderr, want)
	}
	a = callreel("", "cfi", "lint", "--json", path)
	got := realtest.DecodeExactly[struct {
		File, Section string
		FDEs          int
		CodeFollowed  bool `json:"code_followed"`
		Synchronous   bool
		Findings      []lintFinding
	}](t, a.stdout)
	first := lintFinding{lint.WrongCFA, "wrong", at, "cfa=rsp+8", "cfa=rsp+16", ".cfi_adjust_cfa_offset 8"}
	if a.code != exitFailed || len(got.Findings) != 1 || got.Findings[0] != first || got.FDEs != 2 || !got.CodeFollowed || got.File != path {
		t.Errorf("code %d, %+v", a.code, got)
	}
	a = callreel("", "cfi", "lint", "--format", "sarif", path)
	if a.code != exitFailed || !json.Valid([]byte(a.stdout)) || !strings.Contains(a.stdout, `"2.1.0"`) {
		t.Errorf("code %d, %q", a.code, a.stdout)
	}
}

func TestCFILintOfCorrectTablesEndsWithCode0(t *testing.T) {
	realtest.Need(t, realtest.GCC)
	out, err := exec.Command("gcc", "-print-file-name=libgcc_s.so.1").Output()
	if err != nil {
		t.Fatal(err)
	}
	a := callreel("", "cfi", "lint", strings.TrimSpace(string(out)))
	if a.code != exitDone || !strings.Contains(a.stdout, ": 0 findings in ") {
		t.Errorf("code %d, %q and %q", a.code, a.stdout, a.stderr)
	}
}

func TestCFIEvalSaysTheRuleOfEveryRegister(t *testing.T) {
	path := assembleCFI(t)
	start := addressOf(t, path, "right")
	a := callreel("", "cfi", "eval", path, address(start), address(start+1))
	want := fmt.Sprintf("%#x: cfa=rsp+8 ra=[cfa-8]\n%#x: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n", start, start+1)
	if a.code != exitDone || a.stdout != want {
		t.Errorf("code %d, %q, want %q", a.code, a.stdout, want)
	}
	a = callreel("", "cfi", "eval", "--json", path, address(start+1), "0x1")
	if a.code != exitFailed {
		t.Errorf("code %d though an address is not described", a.code)
	}
	lines := strings.SplitAfter(a.stdout, "\n")
	type object struct {
		Address, CFA, Section, Reason string
		Registers                     map[string]string
	}
	got := realtest.DecodeExactly[object](t, lines[0])
	if got.CFA != "rsp+16" || got.Registers["rbx"] != "[cfa-16]" || got.Registers["ra"] != "[cfa-8]" || got.Registers["rbp"] != "same" || got.Section != ".eh_frame" || got.Reason != "" {
		t.Errorf("%+v", got)
	}
	if got := realtest.DecodeExactly[object](t, lines[1]); got.Address != "0x1" || got.Reason == "" || got.CFA != "" {
		t.Errorf("%+v", got)
	}
}

func TestCFIDumpWritesTheRowsOfAnAddressOrAll(t *testing.T) {
	path := assembleCFI(t)
	start, other := addressOf(t, path, "right"), addressOf(t, path, "wrong")
	a := callreel("", "cfi", "dump", path, address(start+2))
	want := fmt.Sprintf(".eh_frame %#x..%#x\n  %#x  cfa=rsp+8 ra=[cfa-8]\n  %#x  cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n  %#x  cfa=rsp+8 ra=[cfa-8]\n",
		start, other, start, start+1, start+5)
	if a.code != exitDone || a.stdout != want {
		t.Errorf("code %d, %q, want %q", a.code, a.stdout, want)
	}
	a = callreel("", "cfi", "dump", path, address(start+2), "0x1")
	if a.code != exitFailed || a.stdout != want+"0x1: not described by call frame information\n" {
		t.Errorf("code %d, %q", a.code, a.stdout)
	}
	a = callreel("", "cfi", "dump", "--json", path)
	lines := strings.Split(strings.TrimSpace(a.stdout), "\n")
	if a.code != exitDone || len(lines) != 2 {
		t.Fatalf("code %d, %q", a.code, a.stdout)
	}
	got := realtest.DecodeExactly[struct {
		Section, Start, End string
		Rows                []dumpedRow
	}](t, lines[0])
	if got.Section != ".eh_frame" || got.Start != address(start) || len(got.Rows) != 3 || got.Rows[1].CFA != "rsp+16" || got.Rows[1].Registers["rbx"] != "[cfa-16]" {
		t.Errorf("%+v", got)
	}
}

func TestCFIVerbsRefuseWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{"cfi"}, {"cfi", "frob"}, {"cfi", "dump"}, {"cfi", "eval", "x"}, {"cfi", "lint"}, {"cfi", "lint", "a", "b"},
		{"cfi", "lint", "--format", "xml", "x"}, {"cfi", "eval", "x", "nonsense"},
	} {
		if a := callreel("", args...); a.code != exitUsage || a.stdout != "" || !strings.HasPrefix(a.stderr, "callreel") {
			t.Errorf("%v: code %d, %q and %q", args, a.code, a.stdout, a.stderr)
		}
	}
}

func TestCFIOfAFileWithoutAnyFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("no program"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"cfi", "dump", path}, {"cfi", "eval", path, "0"}, {"cfi", "lint", path}} {
		if a := callreel("", args...); a.code != exitFailed || !strings.Contains(a.stderr, path) {
			t.Errorf("%v: code %d, %q", args, a.code, a.stderr)
		}
	}
}
