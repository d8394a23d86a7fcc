package reel

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ArgumentKind says how a recorded value is to be read.
type ArgumentKind uint8

// The kinds of values. Their numbers stand in files.
const (
	ArgumentInt     ArgumentKind = 1 // Bits is an int64
	ArgumentUint    ArgumentKind = 2
	ArgumentBool    ArgumentKind = 3 // 0 is false
	ArgumentChar    ArgumentKind = 4
	ArgumentEnum    ArgumentKind = 5 // an int64, of which Names has some
	ArgumentFloat   ArgumentKind = 6 // the bits of a float64
	ArgumentFloat32 ArgumentKind = 7 // the bits of a float32
	ArgumentPointer ArgumentKind = 8
	ArgumentString  ArgumentKind = 9 // Bytes
	ArgumentBytes   ArgumentKind = 10
)

// Argument is what is recorded with calls of a function: an argument, a part of one, or the result.
type Argument struct {
	Name string // as it was asked for: "size", "c->argc"; of a result "return", or a part of it
	Type string // as the source has it; empty if that isn't known
	Kind ArgumentKind
	// Names are an enum's, by their values.
	Names map[int64]string
}

// ValueState says what is known of a value.
type ValueState uint8

// The states. Their numbers stand in files.
const (
	ValueKnown      ValueState = iota
	ValueUnreadable            // it stood where nothing could be read
	ValueNull                  // a null pointer where a string's address should be
)

// Value is one of an Argument.
type Value struct {
	State ValueState
	Bits  uint64
	Bytes []byte // of a string, or a range of bytes
	Cut   bool   // there were more bytes
}

// ValueSet are the values of one event, in the order of its function's Arguments.
type ValueSet struct {
	Number   uint64 // of the event in its thread, from 0
	Function uint32
	AtReturn bool
	Time     uint64 // of the event, in ticks
	SP       uint32
	Values   []Value
}

// Text returns the value as it is shown: numbers in decimal, pointers in hexadecimal, strings as they are, and "?" for what could
// not be read. What is cut ends with "…".
func (a *Argument) Text(v Value) string {
	switch v.State {
	case ValueUnreadable:
		return "?"
	case ValueNull:
		return "null"
	case ValueKnown:
	default:
		return "?"
	}
	switch a.Kind {
	case ArgumentUint:
		return strconv.FormatUint(v.Bits, 10)
	case ArgumentBool:
		switch v.Bits {
		case 0:
			return "false"
		case 1:
			return "true"
		}
		return strconv.FormatUint(v.Bits, 10)
	case ArgumentChar:
		if c := uint8(v.Bits); c >= 0x80 {
			return fmt.Sprintf(`'\x%02x'`, c)
		}
		return strconv.QuoteRune(rune(uint8(v.Bits)))
	case ArgumentEnum:
		return a.enum(int64(v.Bits))
	case ArgumentFloat:
		return strconv.FormatFloat(math.Float64frombits(v.Bits), 'g', -1, 64)
	case ArgumentFloat32:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(v.Bits))), 'g', -1, 32)
	case ArgumentPointer:
		return "0x" + strconv.FormatUint(v.Bits, 16)
	case ArgumentString:
		return string(v.Bytes) + cutMark(v)
	case ArgumentBytes:
		return fmt.Sprintf("%x", v.Bytes) + cutMark(v)
	}
	return strconv.FormatInt(int64(v.Bits), 10)
}

func cutMark(v Value) string {
	if v.Cut {
		return "…"
	}
	return ""
}

// enum names an enum's value: by its name, or those of its bits, as gdb does.
func (a *Argument) enum(v int64) string {
	if name := a.Names[v]; name != "" {
		return name
	}
	var parts []string
	rest := v
	for bit := int64(1); bit != 0 && rest != 0; bit <<= 1 {
		if name := a.Names[bit]; rest&bit != 0 && name != "" {
			parts = append(parts, name)
			rest &^= bit
		}
	}
	if rest != 0 || v <= 0 {
		return strconv.FormatInt(v, 10)
	}
	return strings.Join(parts, " | ")
}

// JSON returns the value as encoding/json is to write it: numbers and booleans as such, pointers and floats that JSON doesn't have as
// strings, null for a null pointer in a string's place.
func (a *Argument) JSON(v Value) any {
	switch {
	case v.State == ValueNull:
		return nil
	case v.State != ValueKnown:
		return a.Text(v)
	}
	switch a.Kind {
	case ArgumentInt:
		return int64(v.Bits)
	case ArgumentUint:
		return v.Bits
	case ArgumentBool:
		return v.Bits != 0
	case ArgumentFloat, ArgumentFloat32:
		f := math.Float64frombits(v.Bits)
		if a.Kind == ArgumentFloat32 {
			f = float64(math.Float32frombits(uint32(v.Bits)))
			if text := strconv.FormatFloat(f, 'g', -1, 32); !math.IsNaN(f) && !math.IsInf(f, 0) {
				f, _ = strconv.ParseFloat(text, 64)
			}
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return a.Text(v)
		}
		return f
	}
	return a.Text(v)
}

// A chunk of kind KindArgs describes functions' arguments if its thread is 0, else it has values of that thread's events.
//
// Of each function: its ID<<1, plus 1 for what is recorded at returns, how many arguments, and of each its name, type, kind, how many names
// an enum has, and those with their values. Of each event: how many events after that of the one before, its function as above, its time
// less that of the one before, its SP likewise, how many values, and of each a byte of state, 4 if it is cut, 8 if it has bytes, and then
// those or the number.
const (
	valueCut   = 4
	valueBytes = 8
	stateMask  = 3
)

const (
	maxArguments = 256
	maxNames     = 4096
	maxArgChunk  = 64 << 10
)

func signature(function uint32, atReturn bool) uint64 {
	if atReturn {
		return uint64(function)<<1 | 1
	}
	return uint64(function) << 1
}

func appendArguments(b []byte, function uint32, atReturn bool, args []Argument) []byte {
	b = appendUvarint(b, signature(function, atReturn))
	b = appendUvarint(b, uint64(len(args)))
	for i := range args {
		a := &args[i]
		b = appendString(b, a.Name)
		b = appendString(b, a.Type)
		b = append(b, byte(a.Kind))
		b = appendUvarint(b, uint64(len(a.Names)))
		for v, name := range a.Names {
			b = appendUvarint(b, zigzag(uint64(v)))
			b = appendString(b, name)
		}
	}
	return b
}

func parseArguments(payload []byte, count uint32) (map[uint64][]Argument, error) {
	d := fields{b: payload}
	all := map[uint64][]Argument{}
	for range count {
		key := d.uvarint()
		args, err := parseArgumentList(&d)
		if err != nil {
			return all, err
		}
		all[key] = args
	}
	return all, nil
}

// parseArgumentList reads how many arguments there are, and those.
func parseArgumentList(d *fields) (args []Argument, err error) {
	n := d.uvarint()
	if n > maxArguments {
		return nil, fmt.Errorf("%d arguments of one function", n)
	}
	for range n {
		a := Argument{Name: d.string(), Type: d.string()}
		if !d.more() {
			return nil, errShortField
		}
		a.Kind, d.b = ArgumentKind(d.b[0]), d.b[1:]
		names := d.uvarint()
		if names > maxNames {
			return nil, fmt.Errorf("%d names of one enum", names)
		}
		for range names {
			if a.Names == nil {
				a.Names = map[int64]string{}
			}
			v := int64(unzigzag(d.uvarint()))
			a.Names[v] = d.string()
		}
		args = append(args, a)
	}
	return args, d.err
}

// valueCoder codes the values of one chunk after the other.
type valueCoder struct {
	number, time uint64
	sp           uint32
}

func (c *valueCoder) append(b []byte, s *ValueSet) []byte {
	b = appendUvarint(b, s.Number-c.number)
	b = appendUvarint(b, signature(s.Function, s.AtReturn))
	b = appendUvarint(b, zigzag(s.Time-c.time))
	b = appendUvarint(b, zigzag(uint64(int64(int32(s.SP-c.sp)))))
	c.number, c.time, c.sp = s.Number, s.Time, s.SP
	b = appendUvarint(b, uint64(len(s.Values)))
	for i := range s.Values {
		v := &s.Values[i]
		head := byte(v.State) & stateMask
		if v.Cut {
			head |= valueCut
		}
		switch {
		case v.State != ValueKnown:
			b = append(b, head)
		case v.Bytes != nil:
			b = append(b, head|valueBytes)
			b = appendUvarint(b, uint64(len(v.Bytes)))
			b = append(b, v.Bytes...)
		default:
			b = append(b, head)
			b = appendUvarint(b, zigzag(v.Bits))
		}
	}
	return b
}

// next decodes a set. Its bytes share the payload.
func (c *valueCoder) next(d *fields, s *ValueSet) error {
	c.number += d.uvarint()
	key := d.uvarint()
	c.time += unzigzag(d.uvarint())
	c.sp += uint32(unzigzag(d.uvarint()))
	n := d.uvarint()
	if d.err != nil || key>>1 > MaxID || n > maxArguments {
		return errShortField
	}
	s.Number, s.Function, s.AtReturn, s.Time, s.SP = c.number, uint32(key>>1), key&1 != 0, c.time, c.sp
	s.Values = s.Values[:0]
	for range n {
		if !d.more() {
			return errShortField
		}
		head := d.b[0]
		d.b = d.b[1:]
		v := Value{State: ValueState(head & stateMask), Cut: head&valueCut != 0}
		switch {
		case v.State != ValueKnown:
		case head&valueBytes != 0:
			v.Bytes = d.bytes()
			if v.Bytes == nil {
				v.Bytes = []byte{}
			}
		default:
			v.Bits = unzigzag(d.uvarint())
		}
		s.Values = append(s.Values, v)
	}
	return d.err
}
