package sdt

import (
	"fmt"
	"reflect"
	"testing"
)

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		text string
		want Argument
	}{
		{"-4@%edi", Argument{Size: 4, Signed: true, Operand: Operand{Place: Register, Reg: "edi"}}},
		{"8@-16(%rbp)", Argument{Size: 8, Operand: Operand{Place: Memory, Base: "rbp", Disp: -16}}},
		{"8@(%rsp)", Argument{Size: 8, Operand: Operand{Place: Memory, Base: "rsp"}}},
		{"8@$5", Argument{Size: 8, Operand: Operand{Place: Constant, Value: 5}}},
		{"-4@$-7", Argument{Size: 4, Signed: true, Operand: Operand{Place: Constant, Value: -7}}},
		{"8@$18446744073709551615", Argument{Size: 8, Operand: Operand{Place: Constant, Value: -1}}},
		{"4@foo(%rip)", Argument{Size: 4, Operand: Operand{Place: Memory, Symbol: "foo", FromPC: true}}},
		{"8@foo+4(%rip)", Argument{Size: 8, Operand: Operand{Place: Memory, Symbol: "foo", Disp: 4, FromPC: true}}},
		{"-4@40+foo.7(%rip)", Argument{Size: 4, Signed: true, Operand: Operand{Place: Memory, Symbol: "foo.7", Disp: 40, FromPC: true}}},
		{"8@-8+-4+foo(%rip)", Argument{Size: 8, Operand: Operand{Place: Memory, Symbol: "foo", Disp: -12, FromPC: true}}},
		{"8@(%rax,%rbx,8)", Argument{Size: 8, Operand: Operand{Place: Memory, Base: "rax", Index: "rbx", Scale: 8}}},
		{"8@foo(,%rbx,4)", Argument{Size: 8, Operand: Operand{Place: Memory, Symbol: "foo", Index: "rbx", Scale: 4}}},
		{"8f@%xmm0", Argument{Size: 8, Float: true, Operand: Operand{Place: Register, Reg: "xmm0"}}},
		{"8f@%st(1)", Argument{Size: 8, Float: true, Operand: Operand{Place: Register, Reg: "st(1)"}}},
		{"-1@%ah", Argument{Size: 1, Signed: true, Operand: Operand{Place: Register, Reg: "ah"}}},
		{"%rax", Argument{Operand: Operand{Place: Register, Reg: "rax"}}},
		{"8@x0", Argument{Size: 8, Operand: Operand{Place: Register, Reg: "x0"}}},
		{"-4@[sp, 12]", Argument{Size: 4, Signed: true, Operand: Operand{Place: Memory, Base: "sp", Disp: 12}}},
		{"8@[x19]", Argument{Size: 8, Operand: Operand{Place: Memory, Base: "x19"}}},
		{"8@5", Argument{Size: 8, Operand: Operand{Place: Constant, Value: 5}}},
	} {
		got := ParseArguments(c.text)
		c.want.Text = c.text
		if len(got) != 1 || !reflect.DeepEqual(got[0], c.want) {
			t.Errorf("%s: %+v", c.text, got)
		}
	}
}

func TestWhatIsNotUnderstoodHasAReason(t *testing.T) {
	for _, text := range []string{"3@%rax", "2f@%xmm0", "8@", "8@%", "8@$", "8@$x", "8@(%rip)", "8@foo(%rip,%rax)", "8@()", "8@(%rax,%rbx,3)",
		"8@%fs:0", "8@[", "8@[sp, 1, 2]", "8@foo+bar(%rip)", "-@%rax", "8@(%rax"} {
		for _, a := range ParseArguments(text) {
			if a.Err == nil || a.Place != Unknown {
				t.Errorf("%s: %+v", text, a)
			}
		}
	}
}

func TestManyArgumentsAreBounded(t *testing.T) {
	text := ""
	for i := range 1000 {
		text += fmt.Sprintf("8@$%d ", i)
	}
	if got := ParseArguments(text); len(got) != maxArguments+1 || got[maxArguments].Err == nil {
		t.Errorf("%d", len(got))
	}
}

func FuzzArguments(f *testing.F) {
	f.Add("-4@%edi 8@-16(%rbp) 8@$5 4@foo(%rip) 8@(%rax,%rbx,8) 8f@%xmm0")
	f.Add("-4@[sp, 12] 8@x0")
	f.Fuzz(func(t *testing.T, text string) {
		for _, a := range ParseArguments(text) {
			if (a.Err == nil) == (a.Place == Unknown) || a.Place == Memory && a.Base == "" && a.Index == "" && !a.FromPC {
				t.Errorf("%q: %+v", text, a)
			}
		}
	})
}
