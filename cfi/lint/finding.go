package lint

import (
	"cmp"
	"slices"
)

// Kind says what is wrong.
type Kind string

// The kinds of findings. Their values are promised to scripts.
const (
	WrongCFA      Kind = "cfa"            // the CFA is not where the row says
	WrongRegister Kind = "register"       // a register that calls keep is not where the row says
	WrongRA       Kind = "return-address" // the return address is not where the row says
	WrongEpilogue Kind = "epilogue"       // as cfa and register, where the rows leave the whole epilogue out
	SplitInsn     Kind = "row-boundary"   // a row or an FDE ends within an instruction
	Unbalanced    Kind = "unbalanced"     // remember_state and restore_state are no pairs
	Damaged       Kind = "damaged"        // a record or program cannot be read
	OutsideRow    Kind = "row-outside"    // rows go on behind the end of the FDE's code
	OutsideCode   Kind = "outside-code"   // an FDE describes what is no code
	Overlap       Kind = "overlap"        // two FDEs describe the same code
	NoCFI         Kind = "no-cfi"         // a function has no FDE
	WrongHeader   Kind = "header"         // .eh_frame_hdr does not list the FDEs as they are
)

// Kinds lists all kinds with a sentence for each, in the order of the constants.
func Kinds() []KindText {
	return []KindText{
		{WrongCFA, "The CFA is not where the row says."},
		{WrongRegister, "A callee-saved register is not where the row says."},
		{WrongRA, "The return address is not where the row says."},
		{WrongEpilogue, "The rows do not follow the stack pointer through an epilogue."},
		{SplitInsn, "A row or an FDE ends within an instruction."},
		{Unbalanced, "remember_state and restore_state are no pairs."},
		{Damaged, "A record or its program cannot be read."},
		{OutsideRow, "Rows go on behind the end of the FDE's code."},
		{OutsideCode, "An FDE describes addresses that hold no code."},
		{Overlap, "Two FDEs describe the same code."},
		{NoCFI, "A function has no call frame information."},
		{WrongHeader, ".eh_frame_hdr does not list the FDEs as they are."},
	}
}

// KindText is a kind and what it means in a sentence.
type KindText struct {
	Kind Kind
	Text string
}

// A Finding is one error of the call frame information, found by reading the code or by running it.
type Finding struct {
	Kind      Kind
	Function  string // the symbol that covers the address, as the file has it, else where its FDE begins: "0x1dd420"; "" for neither
	Address   uint64 // link address of the first instruction at which it shows
	Says      string // what the call frame information says there: "cfa=rsp+168"
	Truth     string // what is the case: "cfa=rsp+8"
	Directive string // the assembler directive that would mend it; "" where none would
}

// sortFindings orders findings by address.
func sortFindings(list []Finding) {
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Says, b.Says))
	})
}
