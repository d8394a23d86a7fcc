package plan

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/golang"
)

// ChangedBefore tells which general registers may be changed between the function's first instruction and its entry event, which may come
// at the function's first call, and whether vector registers may be. On arm64 it tells all or none, but in Go programs.
func (im *Image) ChangedBefore(f *Function) (registers uint32, vectors bool) {
	if im.processor.arch == object.ARM64 {
		return im.changedBeforeARM64(f)
	}
	for i := range f.Sites {
		s := &f.Sites[i]
		if s.Role != RoleEntry || s.Kind != SiteBranch {
			continue
		}
		t := im.textAt(f.Addr)
		for addr := f.Addr; t != nil && addr < s.Addr; {
			var in amd64.Inst
			if addr < t.start || addr >= t.end || amd64.DecodeTo(&in, t.data[addr-t.start:]) != nil {
				return ^uint32(0), true
			}
			registers |= uint32(in.GPRWritten() &^ (1 << amd64.RSP))
			if d, known := in.StackDelta(); !known || d == 0 {
				vectors = true
			}
			addr += uint64(in.Len)
		}
	}
	return registers, vectors
}

// changedBeforeARM64 says that all may be changed where the event comes behind more than what has to be where indirect calls arrive. In a Go program it
// comes behind the check of the stack at most.
func (im *Image) changedBeforeARM64(f *Function) (registers uint32, vectors bool) {
	for i := range f.Sites {
		s := &f.Sites[i]
		if s.Role != RoleEntry {
			continue
		}
		if im.Go != nil {
			return golang.CheckScratchARM64, false
		}
		t := im.textAt(f.Addr)
		for addr := f.Addr; t != nil && addr < s.Addr; addr += arm64.Len {
			var in arm64.Inst
			if addr >= t.end || arm64.DecodeWord(&in, t.word(addr)) != nil || !in.IsLandingPad() {
				return ^uint32(0), true
			}
		}
	}
	return 0, false
}
