package arguments

import (
	"runtime"

	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// An abi says where a processor's functions have their arguments and their results, and which numbers DWARF gives its registers.
type abi struct {
	name                    string    // as it is told to users
	integers                []isa.Reg // in which arguments are
	results                 []isa.Reg
	vectors                 int       // vector registers in which arguments are, from the first on
	returnSize              int64     // bytes that a return address takes on the stack, in front of the arguments there
	golang                  []isa.Reg // of Go's arguments, and of its results
	goVectors               int
	sp                      isa.Reg
	dwarf                   []isa.Reg // general registers, by their numbers from 0 on
	firstVector, lastVector int
	// place gives all arguments their places, and result is the result's.
	place  func(d *Debug, s *Signature, result *Type)
	result func(d *Debug, s *Signature, t *Type) place
}

// abiOf is that of an image's processor.
func abiOf(im *object.Image) *abi {
	if im.Arch == object.ARM64 {
		return aapcs64
	}
	return systemV
}

// hostABI is that of the processor that this runs on.
func hostABI() *abi {
	if runtime.GOARCH == "arm64" {
		return aapcs64
	}
	return systemV
}

// place is where a value stands: in registers, piece by piece, or in memory.
type place struct {
	pieces []piece
	// memory is where it begins: Off bytes from where Path leads.
	memory *stub.Operand
	why    string // it is not known where, and this is why
}

// piece is a register that has Size bytes of a value, from its byte At on.
type piece struct {
	at, size int64
	operand  stub.Operand
}

func inMemory(origin stub.Origin, r isa.Reg, off int64) place {
	return place{memory: &stub.Operand{Origin: origin, Reg: r, Memory: true, Off: int32(off)}}
}

// maxStack bounds what is on the stack, and what is recorded of: bytes.
const maxStack = 1 << 20

// registerOfNumber is the register that DWARF gives a number.
func (a *abi) registerOfNumber(n int) (o stub.Operand, ok bool) {
	switch {
	case n >= 0 && n < len(a.dwarf):
		o.Reg = a.dwarf[n]
		return o, o.Reg != a.sp
	case n >= a.firstVector && n <= a.lastVector:
		o.Origin, o.Vector = stub.OriginVector, uint8(n-a.firstVector)
		return o, true
	}
	return o, false
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
