package stub

// MaxPatch is how many bytes a patch changes at most.
const MaxPatch = 5

// Patch is bytes of the target that change.
type Patch struct {
	Addr     uint64 // the target's
	Index    uint32 // of the probe that it is for, among those that the code was made of
	old, new [MaxPatch]byte
	size     uint8
	Island   bool // in padding: to be written before, and restored after, the sites that jump to it
	Hosted   bool // behind the jump of a site: only another site's jump leads here
	// Level orders the writing: what has a higher one leads to, or relies on, what has a lower one. Islands in padding have 0,
	// most sites 1. Text is restored the other way round.
	Level uint8
	// Alone says that all that it leads to or relies on, and all that leads to or relies on it, is on its own page. So its level doesn't
	// matter where pages are written whole.
	Alone bool
	ID    uint32 // the function's, 0 for one that only has a hook
}

// NewPatch makes a patch of as many old bytes as new ones, at most MaxPatch.
func NewPatch(addr uint64, old, new []byte) Patch {
	p := Patch{Addr: addr}
	p.size = uint8(copy(p.old[:], old))
	copy(p.new[:], new)
	return p
}

// Old is what the file has there. The slice belongs to the patch.
func (p *Patch) Old() []byte { return p.old[:p.size] }

// New is what is to be there instead. The slice belongs to the patch.
func (p *Patch) New() []byte { return p.new[:p.size] }
