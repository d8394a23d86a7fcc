package arm64

// Generator makes the code of stubs for AArch64. It has no state.
type Generator struct{}

// first is the offset in the arena of the code that the coder makes.
func (c *coder) first() uint32 { return uint32(c.Base() - c.base) }
