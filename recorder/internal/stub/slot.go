package stub

// Slot is the entry of a function whose probe is made on its first call.
type Slot struct {
	ID   uint32
	At   uint32 // offset in the code, a multiple of 8
	Word uint64 // what is to be there then
}
