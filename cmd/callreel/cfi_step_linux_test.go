package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/cfi/lint"
	"github.com/callreel/callreel/internal/realtest"
)

// steppedProgram builds a program that calls a function with right and one with wrong call frame information.
func steppedProgram(t *testing.T) string {
	t.Helper()
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	dir := t.TempDir()
	assembly, source, out := filepath.Join(dir, "x.S"), filepath.Join(dir, "y.c"), filepath.Join(dir, "program")
	for path, text := range map[string]string{
		assembly: `
	.text
	.globl right, wrong
	.type right, @function
	.type wrong, @function
right:	.cfi_startproc
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	pop %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size right, .-right
wrong:	.cfi_startproc
	push %rdi
	pop %rax
	ret
	.cfi_endproc
	.size wrong, .-wrong
	.section .note.GNU-stack,"",@progbits
`,
		source: `int right(int), wrong(int); int main(void) { right(1); return wrong(3); }`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if said, err := exec.Command("gcc", "-o", out, assembly, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, said)
	}
	return out
}

// steppedJSON is what --json promises.
type steppedJSON struct {
	Steps, Functions, Chosen, Calls, Threads int
	Complete                                 bool
	ExitCode                                 int `json:"exit_code"`
	Findings                                 []struct{ Kind, Function, Address, Says, Truth, Directive, Module string }
}

func TestCFIStepEndsWithCode1OnFindings(t *testing.T) {
	path := steppedProgram(t)
	at := address(addressOf(t, path, "wrong") + 1)
	a := callreel("", "cfi", "step", "-m", "program", "-f", "wr*", "--", path)
	want := "program:" + at + ": cfa in wrong: says cfa=rsp+8, truth is cfa=rsp+16; mend with .cfi_adjust_cfa_offset 8\n" +
		path + ": 1 finding in 3 steps, 1 function of 1 chosen, 1 call; the command ended with code 3\n"
	if a.code != exitFailed || a.stdout != "" || !strings.HasSuffix(a.stderr, want) {
		t.Errorf("code %d, %q and %q, want %q", a.code, a.stdout, a.stderr, want)
	}
}

func TestCFIStepWritesWhatItPromisesAsJSON(t *testing.T) {
	path := steppedProgram(t)
	summary := filepath.Join(t.TempDir(), "steps.json")
	a := callreel("", "cfi", "step", "--json", "--summary", summary, "-m", "program", "-f", "wrong", "-f", "right", "--", path)
	text, err := os.ReadFile(summary)
	if err != nil || string(text) != a.stdout {
		t.Errorf("%v: %q and %q", err, text, a.stdout)
	}
	got := realtest.DecodeExactly[steppedJSON](t, a.stdout)
	if a.code != exitFailed || got.Steps != 6 || got.Functions != 2 || got.Calls != 2 || !got.Complete || got.ExitCode != 3 || len(got.Findings) != 1 {
		t.Fatalf("code %d, %+v", a.code, got)
	}
	f := got.Findings[0]
	if f.Kind != string(lint.WrongCFA) || f.Function != "wrong" || f.Module != "program" || f.Says != "cfa=rsp+8" || f.Truth != "cfa=rsp+16" {
		t.Errorf("%+v", f)
	}
}

func TestCFIStepOfRightInformationEndsWithCode0(t *testing.T) {
	path := steppedProgram(t)
	for _, globs := range [][]string{{"-f", "right"}, {"-m", "prog*", "-f", "*r*g*", "-x", "wrong", "-x", "*[_.]*"}} {
		a := callreel("", append(append([]string{"cfi", "step", "--json"}, globs...), "--", path)...)
		if got := realtest.DecodeExactly[steppedJSON](t, a.stdout); a.code != exitDone || got.Calls != 1 {
			t.Errorf("%v: code %d, %+v and %q", globs, a.code, got, a.stderr)
		}
	}
}

func TestCFIStepRefusesWrongUsage(t *testing.T) {
	path := steppedProgram(t)
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"-f", "x"}, exitUsage},
		{[]string{"-f", "x", path}, exitUsage},
		{[]string{"--max-steps", "0", "--", path}, exitUsage},
		{[]string{"-f", "no such function", "--", path}, exitUsage},
		{[]string{"-m", "no such module", "--", path}, exitUsage},
		{[]string{"-f", "right", "--", path + ".none"}, exitNotFound},
	} {
		if a := callreel("", append([]string{"cfi", "step"}, c.args...)...); a.code != c.code || a.stdout != "" || !strings.HasPrefix(a.stderr, "callreel") {
			t.Errorf("%v: code %d, %q and %q", c.args, a.code, a.stdout, a.stderr)
		}
	}
}
