package cfi

import (
	"encoding/binary"
	"errors"
	"testing"
)

// evalInput knows the registers r = 0x1000·(r+1) below 20 and memory in which each
// byte is the low byte of its address, from 0x8000 to 0x9000.
func evalInput() *EvalInput {
	return &EvalInput{
		Reg: func(reg uint32) (uint64, bool) { return 0x1000 * uint64(reg+1), reg < 20 },
		Read: func(addr uint64, buf []byte) error {
			if addr < 0x8000 || addr > 0x9000-8 {
				return errors.New("not mapped")
			}
			for k := range buf {
				buf[k] = byte(addr) + byte(k)
			}
			return nil
		},
	}
}

func TestExpressionsHaveTheirValues(t *testing.T) {
	for _, test := range []struct {
		name string
		expr string
		want uint64
	}{
		{"literal", "\x30\x4f", 31},
		{"register and offset", "\x77\x08", 0x8008},
		{"register by number", "\x92\x10\x7f", 0x10fff},
		{"register alone", "\x53", 0x4000},
		{"numbered register alone", "\x90\x03", 0x4000},
		{"addr", "\x03\x08\x07\x06\x05\x04\x03\x02\x01", 0x0102030405060708},
		{"const1u", "\x08\xff", 0xff},
		{"const1s", "\x09\xff", 1<<64 - 1},
		{"const2u", "\x0a\xfe\xff", 0xfffe},
		{"const2s", "\x0b\xfe\xff", 1<<64 - 2},
		{"const4u", "\x0c\xfe\xff\xff\xff", 0xfffffffe},
		{"const4s", "\x0d\xfe\xff\xff\xff", 1<<64 - 2},
		{"const8u", "\x0e\x08\x07\x06\x05\x04\x03\x02\x01", 0x0102030405060708},
		{"const8s", "\x0f\xff\xff\xff\xff\xff\xff\xff\xff", 1<<64 - 1},
		{"constu", "\x10\x90\x40", 0x2010},
		{"consts", "\x11\x7f", 1<<64 - 1},
		{"dup", "\x35\x12\x1e", 25},
		{"drop", "\x35\x36\x13", 5},
		{"over", "\x35\x36\x14", 5},
		{"pick", "\x35\x36\x37\x15\x02", 5},
		{"swap", "\x35\x36\x16", 5},
		{"rot", "\x35\x36\x37\x17", 6},
		{"rot puts the top third", "\x35\x36\x37\x17\x13\x13", 7},
		{"abs", "\x09\xfb\x19", 5},
		{"and", "\x36\x33\x1a", 2},
		{"div is signed", "\x09\xf9\x32\x1b", 1<<64 - 3},
		{"least number divided by -1", "\x0e\x00\x00\x00\x00\x00\x00\x00\x80\x09\xff\x1b", 1 << 63},
		{"minus", "\x35\x37\x1c", 1<<64 - 2},
		{"mod is unsigned", "\x09\xff\x3a\x1d", (1<<64 - 1) % 10},
		{"mul", "\x35\x37\x1e", 35},
		{"neg", "\x35\x1f", 1<<64 - 5},
		{"not", "\x30\x20", 1<<64 - 1},
		{"or", "\x35\x32\x21", 7},
		{"plus", "\x35\x32\x22", 7},
		{"plus_uconst", "\x35\x23\x80\x01", 133},
		{"shl", "\x31\x38\x24", 256},
		{"shl by 64", "\x31\x08\x40\x24", 0},
		{"shr", "\x09\xff\x08\x3c\x25", 15},
		{"shra", "\x09\xf0\x32\x26", 1<<64 - 4},
		{"shra by a lot", "\x09\xf0\x08\xff\x26", 1<<64 - 1},
		{"xor", "\x35\x36\x27", 3},
		{"eq", "\x35\x35\x29", 1},
		{"ge is signed", "\x09\xff\x30\x2a", 0},
		{"gt", "\x36\x35\x2b", 1},
		{"le", "\x35\x35\x2c", 1},
		{"lt is signed", "\x09\xff\x30\x2d", 1},
		{"ne", "\x35\x35\x2e", 0},
		{"branch taken", "\x35\x31\x28\x01\x00\x13", 5},
		{"branch not taken", "\x35\x36\x30\x28\x01\x00\x13", 5},
		{"skip to the end", "\x35\x2f\x01\x00\x36", 5},
		{"a loop", "\x3a\x31\x1c\x12\x28\xfa\xff", 0},
		{"deref", "\x77\x08\x06", 0x0f0e0d0c0b0a0908},
		{"deref_size", "\x77\x08\x94\x03", 0x0a0908},
		{"nop", "\x35\x96", 5},
		{"the linker's PLT rule in the first half of an entry", "\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22", 0x8008},
	} {
		var e Evaluator
		got, err := e.Eval([]byte(test.expr), evalInput())
		if err != nil || got != test.want {
			t.Errorf("%s: %#x, %v, want %#x", test.name, got, err, test.want)
		}
	}
}

func TestExpressionsStartWithTheCFA(t *testing.T) {
	in := evalInput()
	in.CFA, in.HasCFA = 0x5000, true
	var e Evaluator
	if v, err := e.Eval([]byte("\x23\x08"), in); err != nil || v != 0x5008 {
		t.Errorf("%#x, %v", v, err)
	}
	if v, err := e.Eval(nil, in); err != nil || v != 0x5000 {
		t.Errorf("empty expression: %#x, %v", v, err)
	}
}

func TestValuesHaveTheSizeOfAnAddress(t *testing.T) {
	in := evalInput()
	in.AddrSize = 4
	for expr, want := range map[string]uint64{
		"\x30\x31\x1c":                 0xffffffff, // 0-1
		"\x30\x31\x1c\x31\x26":         0xffffffff, // shra
		"\x30\x31\x1c\x31\x25":         0x7fffffff, // shr
		"\x30\x31\x1c\x30\x2d":         1,          // -1 < 0
		"\x03\x04\x03\x02\x01":         0x01020304, // addr
		"\x77\x08\x06":                 0x0b0a0908, // deref
		"\x0c\x00\x00\x00\x80\x19":     0x80000000, // abs of the least number
		"\x10\x80\x80\x80\x80\x10\x36": 6,          // 2³² is 0
	} {
		var e Evaluator
		if got, err := e.Eval([]byte(expr), in); err != nil || got != want {
			t.Errorf("%x: %#x, %v, want %#x", expr, got, err, want)
		}
	}
	in.ByteOrder = binary.BigEndian
	var e Evaluator
	if got, err := e.Eval([]byte("\x0a\x80\x08\x94\x02"), in); err != nil || got != 0x0809 {
		t.Errorf("big-endian: %#x, %v", got, err)
	}
}

func TestBadExpressionsAreTypedErrors(t *testing.T) {
	for _, test := range []struct {
		name, expr string
		want       error
	}{
		{"nothing", "", ErrExprUnderflow},
		{"plus of one", "\x30\x22", ErrExprUnderflow},
		{"pick too deep", "\x30\x15\x01", ErrExprUnderflow},
		{"rot of two", "\x30\x30\x17", ErrExprUnderflow},
		{"drop of none", "\x13", ErrExprUnderflow},
		{"too much", repeated("\x30", maxExprStack+1), ErrExprOverflow},
		{"endless loop", "\x2f\xfd\xff", ErrExprSteps},
		{"branch before the start", "\x2f\xfc\xff", ErrExprBranch},
		{"branch behind the end", "\x2f\x01\x00", ErrExprBranch},
		{"division by zero", "\x31\x30\x1b", ErrExprDivision},
		{"remainder by zero", "\x31\x30\x1d", ErrExprDivision},
		{"operand cut", "\x0c\x00\x00", ErrExprTruncated},
		{"number without end", "\x10\x80", ErrExprTruncated},
		{"branch cut", "\x2f\x00", ErrExprTruncated},
		{"deref_size of nothing", "\x77\x08\x94\x00", ErrExprOperand},
		{"deref_size too large", "\x77\x08\x94\x09", ErrExprOperand},
		{"register not known", "\x92\x63\x00", ErrExprRegister},
		{"memory not there", "\x30\x06", ErrExprMemory},
		{"call_frame_cfa", "\x9c", ErrExprNotAllowed},
		{"entry_value", "\xa3\x01\x53", ErrExprNotAllowed},
		{"stack_value", "\x30\x9f", ErrExprNotAllowed},
		{"fbreg", "\x91\x00", ErrExprNotAllowed},
		{"unknown", "\xff", ErrExprUnknown},
	} {
		var e Evaluator
		v, err := e.Eval([]byte(test.expr), evalInput())
		var typed *EvalError
		if !errors.Is(err, test.want) || !errors.As(err, &typed) || typed.Offset > len(test.expr) {
			t.Errorf("%s: %#x, error %v, want %v", test.name, v, err, test.want)
		}
	}
	var e Evaluator
	if _, err := e.Eval([]byte("\x77\x00\x06"), &EvalInput{}); !errors.Is(err, ErrExprRegister) {
		t.Errorf("no registers: %v", err)
	}
	if _, err := e.Eval([]byte("\x30\x06"), &EvalInput{}); !errors.Is(err, ErrExprMemory) {
		t.Errorf("no memory: %v", err)
	}
}

func repeated(s string, n int) string {
	out := ""
	for range n {
		out += s
	}
	return out
}

func TestEvaluationAllocatesNothing(t *testing.T) {
	in := evalInput()
	in.CFA, in.HasCFA = 0x8000, true
	expr := []byte("\x77\x08\x06\x13\x12\x23\x10\x94\x04\x22")
	e := new(Evaluator)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := e.Eval(expr, in); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzEval(f *testing.F) {
	f.Add([]byte("\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"), uint64(0x8000), byte(1))
	f.Add([]byte("\x3a\x31\x1c\x12\x28\xfa\xff\x94\x03"), uint64(0), byte(2))
	f.Fuzz(func(t *testing.T, expr []byte, cfa uint64, form byte) {
		in := evalInput()
		in.CFA, in.HasCFA = cfa, form&1 != 0
		if form&2 != 0 {
			in.AddrSize = 4
		}
		if form&4 != 0 {
			in.ByteOrder = binary.BigEndian
		}
		var e Evaluator
		v, err := e.Eval(expr, in)
		var typed *EvalError
		if err != nil && !errors.As(err, &typed) {
			t.Errorf("error of type %T", err)
		}
		if err == nil && in.AddrSize == 4 && v>>32 != 0 {
			t.Errorf("value %#x is too large", v)
		}
	})
}

func BenchmarkEval(b *testing.B) {
	in := evalInput()
	var e Evaluator
	expr := []byte("\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22")
	for b.Loop() {
		if _, err := e.Eval(expr, in); err != nil {
			b.Fatal(err)
		}
	}
}
