package unwind

// withoutSignature takes the signature (PAC) off a code pointer as this machine has it.
func withoutSignature(pointer uint64) uint64

// stripHere is strip without the bits that signatures have on this machine: where user addresses have fewer than 48 bits, signatures have
// more.
func stripHere(strip uint64) uint64 { return strip & withoutSignature(strip) }
