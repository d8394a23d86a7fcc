package stub

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// A Capture is what an event of a function carries besides: values of arguments at an entry, of the result at a return. What is in
// registers is stored as it is, with no system call. What is in memory is read by process_vm_readv(2), so that a bad pointer gives
// no value instead of a fault, see slow.go for what surrounds a system call.
type Capture struct {
	Fields []Field
	// Conditions are on values in memory, of an entry: a call for which one of them doesn't hold, or can't be read, is not recorded.
	Conditions []Condition

	direct []int // of Fields, those in registers
	fixed  int   // bytes that they take
}

// Captures are those of one function.
type Captures struct {
	Entry, Return *Capture // nil for none
	// Conditions are on arguments in registers: a call for which one of them doesn't hold is not recorded. These, and those of Entry,
	// take an open stack.
	Conditions []Condition
	// Constant, of a marker in a Go program, says which events are another's; nil for none.
	Constant *Constant
}

// A Constant is a string that a marker in a Go program expects among the program's constants, of which where it is tells what it is: then no
// byte of it is read. Where it is elsewhere the event is that of the marker Else, whose capture reads it.
type Constant struct {
	Reg        isa.Reg // in which its address is
	From, Size uint64  // where the constants are, in the target
	Else       uint32  // ID
}

// Chosen says whether not all calls are recorded.
func (c *Captures) Chosen() bool {
	return len(c.Conditions) > 0 || c.Entry != nil && len(c.Entry.Conditions) > 0
}

// Reads says whether values or conditions of the function take system calls.
func (c *Captures) Reads() bool {
	return c.Entry != nil && c.Entry.Reads() || c.Return != nil && c.Return.Reads()
}

// NotesResult says whether the entry notes where the result is to go.
func (c *Captures) NotesResult() bool {
	return c.Return != nil && slices.ContainsFunc(c.Return.Fields, func(f Field) bool { return f.IsOfResult() })
}

// IsOfResult says whether it is found by where the result was asked for.
func (f *Field) IsOfResult() bool {
	return f.Value.Origin == OriginResult || f.Len.Origin == OriginResult
}

// Of is what its entry, or its return, carries.
func (c *Captures) Of(exit bool) *Capture {
	if exit {
		return c.Return
	}
	return c.Entry
}

// Origin is where a value, or the way to it, begins.
type Origin uint8

// The origins.
const (
	OriginReg     Origin = iota // a general register
	OriginVector                // the low half of an XMM register
	OriginStack                 // the stack pointer at the function's entry, or at the marker
	OriginAddress               // Operand.Addr
	OriginResult                // of a return, where the caller has asked for the result to go: what was in x8 at the entry on arm64
)

// Operand is a number.
type Operand struct {
	Origin Origin
	Reg    isa.Reg // of the processor that the code is for
	Vector uint8
	// Scale, if it isn't 0, says that Scale times the register Index is added to what the operand begins with: 1, 2, 4 or 8. It isn't Safe then.
	Index isa.Reg
	Scale uint8
	// Path are pointers looked through: each the offset at which the next one is, from the last, which is at first the register.
	Path []int32
	// Memory says that the value is in memory, Off bytes from where the last pointer leads; else it is that address itself.
	Memory bool
	Off    int32
	// Safe says that the memory can be read with no fear of a fault: it is the stack, or the image's own data. Path is empty then.
	Safe   bool
	Addr   uint64 // of OriginAddress, in the target
	Shift  uint8  // how many bytes of the register are before the value; 0 in memory
	Size   uint8  // in bytes: 1, 2, 4 or 8
	Signed bool
}

// Wide says whether eight bytes of a register are stored for it, instead of four.
func (o *Operand) Wide() bool { return o.Size+o.Shift > 4 }

// InRegister says whether it takes no system call: it is in a register, or in memory that is Safe to be read.
func (o *Operand) InRegister() bool {
	return o.Safe || !o.Memory && len(o.Path) == 0 && o.Off == 0 && o.Scale == 0 && o.Origin != OriginResult
}

// FieldKind says what of a field is recorded.
type FieldKind uint8

// The kinds.
const (
	FieldValue  FieldKind = iota // a number
	FieldString                  // bytes up to a zero
	FieldBytes                   // as many bytes as another value says
)

// Field is one value that is recorded. Of strings and byte ranges Value is the address.
type Field struct {
	Kind  FieldKind
	Value Operand
	Len   Operand // of FieldBytes; one of Size 0 is the constant Max
	Max   uint16  // bytes at most, MaxField
	at    int     // where it is in the payload, if in a register
}

// InRegister says whether it takes no memory access.
func (f *Field) InRegister() bool { return f.Kind == FieldValue && f.Value.InRegister() }

// MaxField is how many bytes of a string may be recorded.
const MaxField = 256

// Value is a field's as it was recorded.
type Value struct {
	State State
	Bits  uint64 // of a number, extended as its type is
	Bytes []byte // of a string
	Cut   bool   // the string was longer
}

// State says what is known of a value: 0 that it is.
type State uint8

// The other states.
const (
	StateUnreadable State = iota + 1 // it could not be read: a bad pointer
	StateNull                        // a null pointer in place of a string
)

// Headers of what isn't in registers: a byte for numbers, two for strings.
const (
	HeadString = 2
	HeadLen    = 1<<14 - 1
	HeadCut    = 1 << 14
	HeadBad    = 1 << 15
)

// LayOut fixes where everything is in the payload. It must be called before the capture is used, and fails if that is too long.
func (c *Capture) LayOut() error {
	c.direct = c.direct[:0]
	var wide, narrow []int
	most := 0
	for i := range c.Fields {
		f := &c.Fields[i]
		switch {
		case f.InRegister():
			c.direct = append(c.direct, i)
			if f.Value.Wide() {
				wide = append(wide, i)
			} else {
				narrow = append(narrow, i)
			}
		case f.Kind == FieldValue:
			most += 1 + 8
		case f.Max > MaxField:
			return fmt.Errorf("%d bytes, more than %d", f.Max, MaxField)
		default:
			most += HeadString + int(f.Max) + 1
		}
	}
	// Eight bytes to an event's time, four to its SP, or three times four to one.
	for k, i := range wide {
		c.Fields[i].at = k * ring.PayloadBytes
	}
	events, at := len(wide), 8
	for k, i := range narrow {
		if k < len(wide) {
			c.Fields[i].at = k*ring.PayloadBytes + 8
			continue
		}
		if at > 8 || events == len(wide) && k == len(wide) {
			at = 0
			events++
		}
		c.Fields[i].at = (events-1)*ring.PayloadBytes + at
		at += 4
	}
	c.fixed = events * ring.PayloadBytes
	if c.fixed+most > ring.MaxPayload*ring.PayloadBytes-8 {
		return fmt.Errorf("%d bytes of values, more than %d", c.fixed+most, ring.MaxPayload*ring.PayloadBytes-8)
	}
	return nil
}

// Inline says whether stubs store it themselves.
func (c *Capture) Inline() bool { return !c.Reads() && c.Events() <= 15 }

// Direct are those of Fields, by their indexes, whose values are in registers, see Field.Place.
func (c *Capture) Direct() []int { return c.direct }

// Fixed is how many bytes the values in registers take in the payload.
func (c *Capture) Fixed() int { return c.fixed }

// Place is where in the payload a field's value is, of one that is in a register.
func (f *Field) Place() int { return f.at }

// Reads says whether it takes system calls.
func (c *Capture) Reads() bool { return len(c.direct) < len(c.Fields) || len(c.Conditions) > 0 }

// Events is how many payload events the values in registers take.
func (c *Capture) Events() int { return c.fixed / ring.PayloadBytes }

// Decode appends the values of a payload to list. What the target wrote may be anything.
func (c *Capture) Decode(payload []byte, list []Value) []Value {
	rest := payload[min(c.fixed, len(payload)):]
	for i := range c.Fields {
		f := &c.Fields[i]
		var v Value
		switch {
		case f.InRegister():
			v = f.fixedValue(payload)
		case f.Kind == FieldValue:
			v, rest = f.readValue(rest)
		default:
			v, rest = f.readBytes(rest)
		}
		list = append(list, v)
	}
	return list
}

func (f *Field) fixedValue(payload []byte) Value {
	var b [8]byte
	if f.at+4 > len(payload) {
		return Value{State: StateUnreadable}
	}
	n := 4
	if f.Value.Wide() {
		n = 8
	}
	copy(b[:n], payload[f.at:])
	return Value{Bits: f.Value.extend(binary.LittleEndian.Uint64(b[:]) >> (8 * f.Value.Shift))}
}

// extend makes 64 bits of a number of the operand's size.
func (o *Operand) extend(v uint64) uint64 {
	unused := 64 - 8*uint(o.Size)
	if o.Signed {
		return uint64(int64(v<<unused) >> unused)
	}
	return v << unused >> unused
}

func (f *Field) readValue(b []byte) (Value, []byte) {
	if len(b) == 0 || b[0] != 1 || len(b) < 9 {
		return Value{State: StateUnreadable}, b[min(1, len(b)):]
	}
	return Value{Bits: f.Value.extend(binary.LittleEndian.Uint64(b[1:]))}, b[9:]
}

func (f *Field) readBytes(b []byte) (Value, []byte) {
	if len(b) < HeadString {
		return Value{State: StateUnreadable}, nil
	}
	h := binary.LittleEndian.Uint16(b)
	b = b[HeadString:]
	switch {
	case h == HeadBad|HeadCut:
		return Value{State: StateNull}, b
	case h&HeadBad != 0:
		return Value{State: StateUnreadable}, b
	}
	n := min(int(h&HeadLen), len(b))
	return Value{Bytes: b[:n:n], Cut: h&HeadCut != 0}, b[n:]
}
