package invoke

import (
	"fmt"
	"math"
	"strings"

	"github.com/callreel/callreel/process"
)

// Types are the names of the types that a result can have.
const Types = "int|uint|long|ulong|short|ushort|char|uchar|bool|ptr|str|double|float|longdouble|void"

// IsType says whether a text is the name of one.
func IsType(text string) bool {
	for _, t := range strings.Split(Types, "|") {
		if t == text {
			return true
		}
	}
	return false
}

// A Value is what a function has returned, read as some type.
type Value struct {
	Type string // "" when it isn't known
	// Number is an integer of the type's width, Float a number with a fraction; whichever it is.
	Number  int64
	Float   float64
	IsFloat bool
	// Text is what a str points to, nil for NULL or where no memory is. Cut says that it goes on.
	Text []byte
	Cut  bool
	// Bits are all 64 of the register for integers.
	Bits uint64
}

// maxText bounds how much of a string is read, in bytes.
const maxText = 4096

// valueOf reads what a function has returned. read reads up to so many bytes of memory.
func valueOf(r process.Returned, kind string, read func(addr uint64, n int) []byte) Value {
	bits := r.Integer[0]
	v := Value{Type: kind, Bits: bits, Number: int64(bits)}
	switch kind {
	case "int":
		v.Number = int64(int32(bits))
	case "uint":
		v.Number = int64(uint32(bits))
	case "short":
		v.Number = int64(int16(bits))
	case "ushort":
		v.Number = int64(uint16(bits))
	case "char":
		v.Number = int64(int8(bits))
	case "uchar":
		v.Number = int64(uint8(bits))
	case "bool":
		v.Number = int64(bits & 1)
	case "double":
		v.Float, v.IsFloat = math.Float64frombits(r.Float[0]), true
	case "float":
		v.Float, v.IsFloat = float64(math.Float32frombits(uint32(r.Float[0]))), true
	case "longdouble":
		v.Float, v.IsFloat = extended(r.X87), true
	case "str":
		if bits == 0 {
			break
		}
		text := read(bits, maxText+1)
		if text == nil {
			break
		}
		end := strings.IndexByte(string(text), 0)
		if v.Cut = end < 0; v.Cut {
			end = min(len(text), maxText)
		}
		v.Text = text[:end:end]
	}
	return v
}

// extended is an x87 number as a double (Intel SDM vol. 1 §4.2.2).
func extended(b [10]byte) float64 {
	var mantissa uint64
	for k := 7; k >= 0; k-- {
		mantissa = mantissa<<8 | uint64(b[k])
	}
	exponent := int(b[8]) | int(b[9]&0x7f)<<8
	sign := 1.0
	if b[9]&0x80 != 0 {
		sign = -1
	}
	switch {
	case exponent == 0x7fff && mantissa<<1 == 0:
		return math.Inf(int(sign))
	case exponent == 0x7fff:
		return math.NaN()
	}
	return sign * math.Ldexp(float64(mantissa), exponent-16383-63)
}

// String is the value as people read it.
func (v Value) String() string {
	switch v.Type {
	case "":
		return fmt.Sprintf("%#x (%d as a long, %d as an int)", v.Bits, int64(v.Bits), int32(v.Bits))
	case "void":
		return "returned"
	case "bool":
		return fmt.Sprint(v.Number != 0)
	case "ptr":
		if v.Bits == 0 {
			return "NULL"
		}
		return fmt.Sprintf("%#x", v.Bits)
	case "str":
		return v.text()
	case "ulong":
		return fmt.Sprintf("%d (%#x)", v.Bits, v.Bits)
	}
	if v.IsFloat {
		return fmt.Sprint(v.Float)
	}
	n := uint64(v.Number)
	switch v.Type {
	case "int", "uint":
		n = uint64(uint32(n))
	case "short", "ushort":
		n = uint64(uint16(n))
	case "char", "uchar":
		n = uint64(uint8(n))
	}
	return fmt.Sprintf("%d (%#x)", v.Number, n)
}

func (v Value) text() string {
	switch {
	case v.Bits == 0:
		return "NULL"
	case v.Text == nil:
		return fmt.Sprintf("%#x, where no memory is", v.Bits)
	}
	text := fmt.Sprintf("%q", v.Text)
	if v.Cut {
		text += "…"
	}
	return text
}
