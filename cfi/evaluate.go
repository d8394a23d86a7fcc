package cfi

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The reasons why an expression has no value. They are wrapped by *EvalError.
var (
	ErrExprTruncated  = errors.New("expression ends within an operation")
	ErrExprUnderflow  = errors.New("stack holds too few values")
	ErrExprOverflow   = errors.New("stack is full")
	ErrExprSteps      = errors.New("too many operations are carried out")
	ErrExprBranch     = errors.New("branch leads out of the expression")
	ErrExprDivision   = errors.New("division by zero")
	ErrExprOperand    = errors.New("operand makes no sense")
	ErrExprRegister   = errors.New("register is not known")
	ErrExprMemory     = errors.New("memory cannot be read")
	ErrExprNotAllowed = errors.New("operation is not allowed in call frame information")
	ErrExprUnknown    = errors.New("operation is not known")
)

const (
	// maxExprStack bounds the stack. The deepest expressions met in shipped
	// libraries need three values.
	maxExprStack = 64
	// maxExprSteps bounds loops that branches make.
	maxExprSteps = 4096
)

// EvalError says at which operation of an expression evaluation stopped, and why.
type EvalError struct {
	Op     byte   // the operation
	Offset int    // of it in the expression, in bytes
	Reg    uint32 // the DWARF number, for ErrExprRegister
	Addr   uint64 // the address, for ErrExprMemory
	Err    error  // one of the ErrExpr errors, or what Read returned
}

func (e *EvalError) Error() string {
	what := fmt.Sprintf("expression: %s at byte %d: %v", opName(e.Op), e.Offset, e.Err)
	switch {
	case errors.Is(e.Err, ErrExprRegister):
		what += fmt.Sprintf(" (register %d)", e.Reg)
	case errors.Is(e.Err, ErrExprMemory):
		what += fmt.Sprintf(" (address %#x)", e.Addr)
	}
	return what
}

func (e *EvalError) Unwrap() error { return e.Err }

// EvalInput is what an expression is evaluated with.
type EvalInput struct {
	// CFA is on the stack at the beginning when HasCFA is set, as it is for the
	// rules of registers; the CFA's own expression starts with an empty stack
	// (DWARF 5 §6.4.2.2 and §6.4.2.3).
	CFA    uint64
	HasCFA bool

	AddrSize  int              // bytes of an address and of every value, 4 or 8; 8 when 0
	ByteOrder binary.ByteOrder // of the expression and of memory; little-endian when nil

	// Reg returns the value of a register by its DWARF number, false when it is
	// not known. Nil knows none.
	Reg func(reg uint32) (uint64, bool)
	// Read fills buf, of at most 8 bytes, from memory. It must not keep buf. Nil
	// can read nothing.
	Read func(addr uint64, buf []byte) error
}

// An Evaluator computes DWARF expressions (DWARF 5 §2.5.1). The zero value is
// ready. It belongs to its owner, who must not use it in several goroutines at
// once; an evaluation that succeeds allocates nothing.
type Evaluator struct {
	stack  [maxExprStack]uint64
	depth  int
	word   [8]byte // what memory is read into
	in     *EvalInput
	size   int
	little bool // byte order
	code   cursor
	at     int // offset of the operation that is carried out
}

// Eval computes an expression and returns the value on the top of its stack: an
// address or a value, as the rule says that it belongs to. The error is an
// *EvalError. Operations that need a compilation unit, an entry value or the CFA
// itself are refused with ErrExprNotAllowed (DWARF 5 §6.4.2). An expression of
// nothing but a register means the register's value, as unwinders take it.
func (e *Evaluator) Eval(expr []byte, in *EvalInput) (uint64, error) {
	e.in, e.depth, e.size = in, 0, in.AddrSize
	if e.size == 0 {
		e.size = 8
	}
	e.code = cursor{data: expr, order: in.ByteOrder}
	if e.code.order == nil {
		e.code.order = binary.LittleEndian
	}
	e.little = e.code.order != binary.BigEndian
	defer e.release()
	if in.HasCFA {
		e.stack[0], e.depth = truncate(in.CFA, e.size), 1
	}
	for steps := 0; e.code.remaining() > 0; steps++ {
		e.at = e.code.at
		op, _ := e.code.u8()
		if steps == maxExprSteps {
			return 0, e.fail(op, ErrExprSteps)
		}
		if err := e.step(op); err != nil {
			return 0, e.fail(op, err)
		}
	}
	if e.depth == 0 {
		return 0, &EvalError{Op: exprNop, Offset: len(expr), Err: ErrExprUnderflow}
	}
	return e.stack[e.depth-1], nil
}

// release lets go of what belongs to the caller.
func (e *Evaluator) release() { e.in, e.code.data = nil, nil }

// fail makes the error, unless one is made already.
func (e *Evaluator) fail(op byte, err error) error {
	var made *EvalError
	if errors.As(err, &made) {
		return err
	}
	return &EvalError{Op: op, Offset: e.at, Err: err}
}

func (e *Evaluator) push(v uint64) error {
	if e.depth == maxExprStack {
		return ErrExprOverflow
	}
	e.stack[e.depth] = truncate(v, e.size)
	e.depth++
	return nil
}

// pushRead pushes an operand that was read.
func (e *Evaluator) pushRead(v uint64, ok bool) error {
	if !ok {
		return ErrExprTruncated
	}
	return e.push(v)
}

func (e *Evaluator) pop() (uint64, error) {
	if e.depth == 0 {
		return 0, ErrExprUnderflow
	}
	e.depth--
	return e.stack[e.depth], nil
}

// signed reads a value as a signed number of the size of an address.
func (e *Evaluator) signed(v uint64) int64 {
	if e.size == 4 {
		return int64(int32(v))
	}
	return int64(v)
}

// register pushes a register's value plus an offset.
func (e *Evaluator) register(op byte, reg uint32, off int64) error {
	if e.in.Reg != nil {
		if v, ok := e.in.Reg(reg); ok {
			return e.push(v + uint64(off))
		}
	}
	return &EvalError{Op: op, Offset: e.at, Reg: reg, Err: ErrExprRegister}
}

// load replaces an address by the n bytes there.
func (e *Evaluator) load(op byte, n int) error {
	addr, err := e.pop()
	if err != nil {
		return err
	}
	if n < 1 || n > e.size {
		return ErrExprOperand
	}
	if e.in.Read == nil {
		return &EvalError{Op: op, Offset: e.at, Addr: addr, Err: ErrExprMemory}
	}
	if err := e.in.Read(addr, e.word[:n]); err != nil {
		return &EvalError{Op: op, Offset: e.at, Addr: addr, Err: fmt.Errorf("%w: %w", ErrExprMemory, err)}
	}
	var v uint64
	for k := range n { // any number of bytes is allowed
		if e.little {
			v |= uint64(e.word[k]) << (8 * k)
		} else {
			v = v<<8 | uint64(e.word[k])
		}
	}
	return e.push(v)
}

// branch moves within the expression; its end is a place, too.
func (e *Evaluator) branch(off uint64) error {
	to := e.code.at + int(int16(off))
	if to < 0 || to > len(e.code.data) {
		return ErrExprBranch
	}
	e.code.at = to
	return nil
}
