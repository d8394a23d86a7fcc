package markers

import (
	"errors"
	"fmt"
	"math"

	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// safeReach is how far above the stack pointer memory is taken for the stack: an argument of the function that the marker is in, or one of its
// variables.
const safeReach = 4096

// redZone is how far below it there are variables (System V AMD64 ABI §3.2.2).
const redZone = 128

// Why an argument can't be recorded.
var (
	errRegister = errors.New("is in a register that isn't known")
	errIndexed  = errors.New("has an address that is computed in a way that isn't known")
	errSymbol   = errors.New("is at a symbol that the file has no address of")
	errSeveral  = errors.New("is at a symbol that stands for several addresses")
	errFar      = errors.New("is too far from its base")
	errFloat    = errors.New("is a float in a register of the x87 unit")
)

// placer finds the places of arguments in one image.
type placer struct {
	im    *object.Image
	slide uint64
	// symbols are those that arguments name, once they are looked up: 0 for one that stands for several.
	symbols map[string][]uint64
}

// operand says where stubs find a value. Constants have none: constant is true, and Bits of the value are v.
func (p *placer) operand(a *sdt.Argument) (o stub.Operand, constant bool, err error) {
	if a.Err != nil {
		return o, false, a.Err
	}
	o.Size, o.Signed = a.Size, a.Signed
	if o.Size == 0 {
		o.Size, o.Signed = 8, true
	}
	switch a.Place {
	case sdt.Constant:
		return o, true, nil
	case sdt.Register:
		err = register(&o, a.Reg)
	case sdt.Memory:
		err = p.memory(&o, &a.Operand)
	default:
		err = errRegister
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", a.Text, err)
	}
	return o, false, err
}

// register places a value that is in a register.
func register(o *stub.Operand, name string) error {
	var vector uint8
	if n, err := fmt.Sscanf(name, "xmm%d", &vector); n == 1 && err == nil {
		if vector > 15 { // the others need what not all processors have
			return errRegister
		}
		o.Origin, o.Vector = stub.OriginVector, vector
		if o.Size < 4 {
			o.Size = 4
		}
		return nil
	}
	if len(name) > 1 && name[:2] == "st" {
		return errFloat
	}
	r, known := registers[name]
	if !known {
		return errRegister
	}
	if r.reg == amd64.RSP {
		if r.size != 8 {
			return errRegister
		}
		o.Origin, o.Size = stub.OriginStack, 8
		return nil
	}
	o.Origin, o.Reg, o.Shift = stub.OriginReg, isa.Reg(r.reg), r.shift
	o.Size = min(o.Size, r.size)
	return nil
}

// memory places a value in memory.
func (p *placer) memory(o *stub.Operand, at *sdt.Operand) error {
	o.Memory = true
	disp := at.Disp
	if at.Symbol != "" {
		addr, err := p.symbol(at.Symbol)
		switch {
		case err != nil:
			return err
		case !at.FromPC && at.Base != "":
			return errIndexed
		}
		addr += uint64(disp)
		o.Origin, o.Addr = stub.OriginAddress, addr+p.slide
		o.Safe = at.Index == "" && p.isLoaded(addr, uint64(o.Size))
		return index(o, at)
	}
	if at.Base == "" && !at.FromPC { // an array at a fixed address
		o.Origin, o.Addr = stub.OriginAddress, uint64(disp)
		return index(o, at)
	}
	if disp < math.MinInt32/2 || disp > math.MaxInt32/2 {
		return errFar
	}
	o.Off = int32(disp)
	r, known := registers[at.Base]
	if !known || r.size != 8 {
		return errRegister
	}
	if r.reg == amd64.RSP {
		o.Origin = stub.OriginStack
		o.Safe = at.Index == "" && disp >= -redZone && disp+int64(o.Size) <= safeReach
		return index(o, at)
	}
	o.Origin, o.Reg = stub.OriginReg, isa.Reg(r.reg)
	return index(o, at)
}

// index adds the register that an address is computed with, if there is one.
func index(o *stub.Operand, at *sdt.Operand) error {
	if at.Index == "" {
		return nil
	}
	r, known := registers[at.Index]
	if !known || r.size != 8 || r.reg == amd64.RSP {
		return errIndexed
	}
	switch at.Scale {
	case 1, 2, 4, 8:
		o.Index, o.Scale = isa.Reg(r.reg), at.Scale
		return nil
	}
	return errIndexed
}

// isLoaded says whether memory is in a segment that the image has been loaded with.
func (p *placer) isLoaded(addr, size uint64) bool {
	for _, s := range p.im.Segments() {
		if s.Type == object.SegmentLoad && s.Perm&object.PermR != 0 && addr >= s.Addr && size <= s.MemSize && addr-s.Addr <= s.MemSize-size {
			return true
		}
	}
	return false
}

// symbol is the link address of a symbol.
func (p *placer) symbol(name string) (uint64, error) {
	list, known := p.symbols[name]
	if !known {
		return 0, errSymbol
	}
	switch len(list) {
	case 0:
		return 0, errSymbol
	case 1:
		return list[0], nil
	}
	return 0, errSeveral
}

// newPlacer looks up the symbols that arguments of notes name.
func newPlacer(im *object.Image, slide uint64, notes []*sdt.Note) *placer {
	p := &placer{im: im, slide: slide, symbols: map[string][]uint64{}}
	for _, n := range notes {
		for i := range n.Arguments {
			if s := n.Arguments[i].Symbol; s != "" {
				p.symbols[s] = nil
			}
		}
	}
	if len(p.symbols) == 0 {
		return p
	}
	// What can't be read has no symbols.
	_ = im.VisitSymbols(func(s *object.Symbol) bool {
		list, wanted := p.symbols[s.Name]
		if wanted && s.Defined() && len(list) < 2 && (len(list) == 0 || list[0] != s.Addr) {
			p.symbols[s.Name] = append(list, s.Addr)
		}
		return true
	})
	return p
}

// part is a register, or a part of one.
type part struct {
	reg   amd64.Reg
	size  uint8
	shift uint8 // in bytes
}

// registers are the names that assemblers give them.
var registers = namedRegisters()

func namedRegisters() map[string]part {
	all := map[string]part{}
	old := []struct {
		reg                     amd64.Reg
		eight, four, two, b, hi string
	}{
		{amd64.RAX, "rax", "eax", "ax", "al", "ah"}, {amd64.RCX, "rcx", "ecx", "cx", "cl", "ch"},
		{amd64.RDX, "rdx", "edx", "dx", "dl", "dh"}, {amd64.RBX, "rbx", "ebx", "bx", "bl", "bh"},
		{amd64.RSP, "rsp", "esp", "sp", "spl", ""}, {amd64.RBP, "rbp", "ebp", "bp", "bpl", ""},
		{amd64.RSI, "rsi", "esi", "si", "sil", ""}, {amd64.RDI, "rdi", "edi", "di", "dil", ""},
	}
	for _, o := range old {
		all[o.eight], all[o.four], all[o.two], all[o.b] = part{o.reg, 8, 0}, part{o.reg, 4, 0}, part{o.reg, 2, 0}, part{o.reg, 1, 0}
		if o.hi != "" {
			all[o.hi] = part{o.reg, 1, 1}
		}
	}
	for n := amd64.R8; n <= amd64.R15; n++ {
		name := fmt.Sprintf("r%d", int(n-amd64.R8)+8)
		all[name], all[name+"d"], all[name+"w"], all[name+"b"] = part{n, 8, 0}, part{n, 4, 0}, part{n, 2, 0}, part{n, 1, 0}
	}
	return all
}
