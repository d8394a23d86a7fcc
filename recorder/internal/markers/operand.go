package markers

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// safeReach is how far above the stack pointer memory is taken for the stack: an argument of the function that the marker is in, or one of its
// variables.
const safeReach = 4096

// redZone is how far below it there are variables on x86-64 (System V AMD64 ABI §3.2.2); on arm64 there are none.
const redZone = 128

// names are a processor's registers by the names that assemblers give them.
type names struct {
	general map[string]part
	vectors string // the letters that vector registers' names begin with
	count   uint8  // of vector registers
	sp      isa.Reg
	redZone int64
}

var (
	namesAMD64 = &names{general: namedAMD64(), count: 16, sp: isa.Reg(amd64.RSP), redZone: redZone}
	namesARM64 = &names{general: namedARM64(), vectors: "vqds", count: 32, sp: 31}
)

// namesOf are those of an image's processor.
func namesOf(im *object.Image) *names {
	if im.Arch == object.ARM64 {
		return namesARM64
	}
	return namesAMD64
}

// vector is the number of a vector register.
func (n *names) vector(name string) (v uint8, is bool) {
	text, is := strings.CutPrefix(name, "xmm")
	if n.vectors != "" {
		is = len(name) > 1 && strings.IndexByte(n.vectors, name[0]) >= 0
		text = strings.TrimLeft(name, n.vectors)
	}
	if !is {
		return 0, false
	}
	k, err := strconv.ParseUint(text, 10, 8)
	return uint8(min(k, 255)), err == nil
}

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
	names *names
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
		err = p.names.register(&o, a.Reg)
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
func (n *names) register(o *stub.Operand, name string) error {
	if vector, is := n.vector(name); is {
		if vector >= n.count { // the others need what not all processors have
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
	r, known := n.general[name]
	if !known {
		return errRegister
	}
	if r.reg == n.sp {
		if r.size != 8 {
			return errRegister
		}
		o.Origin, o.Size = stub.OriginStack, 8
		return nil
	}
	o.Origin, o.Reg, o.Shift = stub.OriginReg, r.reg, r.shift
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
		return p.names.index(o, at)
	}
	if at.Base == "" && !at.FromPC { // an array at a fixed address
		o.Origin, o.Addr = stub.OriginAddress, uint64(disp)
		return p.names.index(o, at)
	}
	if disp < math.MinInt32/2 || disp > math.MaxInt32/2 {
		return errFar
	}
	o.Off = int32(disp)
	r, known := p.names.general[at.Base]
	if !known || r.size != 8 {
		return errRegister
	}
	if r.reg == p.names.sp {
		o.Origin = stub.OriginStack
		o.Safe = at.Index == "" && disp >= -p.names.redZone && disp+int64(o.Size) <= safeReach
		return p.names.index(o, at)
	}
	o.Origin, o.Reg = stub.OriginReg, r.reg
	return p.names.index(o, at)
}

// index adds the register that an address is computed with, if there is one.
func (n *names) index(o *stub.Operand, at *sdt.Operand) error {
	if at.Index == "" {
		return nil
	}
	r, known := n.general[at.Index]
	if !known || r.size != 8 || r.reg == n.sp {
		return errIndexed
	}
	switch at.Scale {
	case 1, 2, 4, 8:
		o.Index, o.Scale = r.reg, at.Scale
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
	p := &placer{im: im, names: namesOf(im), slide: slide, symbols: map[string][]uint64{}}
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
	reg   isa.Reg
	size  uint8
	shift uint8 // in bytes
}

func namedARM64() map[string]part {
	all := map[string]part{"sp": {31, 8, 0}}
	for n := range isa.Reg(31) {
		all[fmt.Sprintf("x%d", n)], all[fmt.Sprintf("w%d", n)] = part{n, 8, 0}, part{n, 4, 0}
	}
	return all
}

func namedAMD64() map[string]part {
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
		r := isa.Reg(o.reg)
		all[o.eight], all[o.four], all[o.two], all[o.b] = part{r, 8, 0}, part{r, 4, 0}, part{r, 2, 0}, part{r, 1, 0}
		if o.hi != "" {
			all[o.hi] = part{r, 1, 1}
		}
	}
	for n := amd64.R8; n <= amd64.R15; n++ {
		name := fmt.Sprintf("r%d", int(n-amd64.R8)+8)
		r := isa.Reg(n)
		all[name], all[name+"d"], all[name+"w"], all[name+"b"] = part{r, 8, 0}, part{r, 4, 0}, part{r, 2, 0}, part{r, 1, 0}
	}
	return all
}
