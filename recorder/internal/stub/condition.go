package stub

// Comparison is how a value is compared.
type Comparison uint8

// The comparisons.
const (
	Equal Comparison = iota
	NotEqual
	Less
	LessEqual
	Greater
	GreaterEqual
)

// Condition compares an argument in a register with a number. The operand has neither Path nor Memory nor Shift, and is no vector.
type Condition struct {
	Value      Operand
	Comparison Comparison
	With       int64 // of an unsigned operand its bits
}

// Possible says whether stubs can look at it.
func (k *Condition) Possible() bool {
	return k.Value.InRegister() && !k.Value.Memory && k.Value.Origin == OriginReg && k.Value.Shift == 0
}
