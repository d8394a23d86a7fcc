package isa

// Reg is a general register, by the number that the package of its architecture has for it: the hardware's, not DWARF's.
type Reg uint8
