package plan

import "github.com/callreel/callreel/isa/amd64"

// ChangedBefore tells which general registers may be changed between the function's first instruction and its entry event, which may come
// at the function's first call, and whether vector registers may be.
func (im *Image) ChangedBefore(f *Function) (registers uint16, vectors bool) {
	for i := range f.Sites {
		s := &f.Sites[i]
		if s.Role != RoleEntry || s.Kind != SiteBranch {
			continue
		}
		t := im.textAt(f.Addr)
		for addr := f.Addr; t != nil && addr < s.Addr; {
			var in amd64.Inst
			if addr < t.start || addr >= t.end || amd64.DecodeTo(&in, t.data[addr-t.start:]) != nil {
				return ^uint16(0), true
			}
			registers |= in.GPRWritten() &^ (1 << amd64.RSP)
			if d, known := in.StackDelta(); !known || d == 0 {
				vectors = true
			}
			addr += uint64(in.Len)
		}
	}
	return registers, vectors
}
