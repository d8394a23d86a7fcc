package plan

import (
	"slices"
	"strings"

	"github.com/callreel/callreel/isa/amd64"
)

// thunk is code that jumps to where a register leads, made so that the processor can't be led astray there (a retpoline).
// Compilers jump to it instead of jumping through the register (gcc -mindirect-branch=thunk, clang -mretpoline).
type thunk struct {
	is    bool
	known bool // which register it is
	reg   amd64.Reg
}

// thunkNames are how the names of such thunks begin: those of gcc and the kernel, and of clang.
var thunkNames = []string{"__x86_indirect_thunk", "__llvm_retpoline", "__llvm_lvi_thunk"}

// thunkReach is how far the parts of a thunk are from its start, alignment included.
const thunkReach = 64 // bytes

// thunkAt says whether a jump to addr goes by a thunk.
func (im *Image) thunkAt(addr uint64) thunk {
	t := im.textAt(addr)
	if t == nil {
		return thunk{}
	}
	put, ok := t.retpoline(addr)
	if ok && replacesReturn(put) {
		return thunk{true, true, amd64.Reg(put.Reg)}
	}
	if k := im.chunkAt(addr); k < 0 || im.chunks[k].start != addr || !im.chunks[k].thunk {
		return thunk{} // one that drops the call's return address is for returns
	}
	reg, ok := t.fencedJump(addr)
	return thunk{true, ok, reg}
}

func isThunkName(name string) bool {
	return slices.ContainsFunc(thunkNames, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// retpoline recognises a thunk by its shape: a call, behind it a loop that only speculation comes to, and where the call leads
// an instruction that puts something else in its return address's place, to which the return behind it then jumps. That
// instruction is the answer.
func (t *text) retpoline(addr uint64) (*amd64.Inst, bool) {
	call, ok := t.instAt(addr)
	if !ok || call.Kind != amd64.Call {
		return nil, false
	}
	to, _ := call.Target(addr)
	if to <= addr || to-addr > thunkReach {
		return nil, false
	}
	put, ok := t.instAt(to)
	if !ok || !replacesReturn(&put) && !dropsReturn(&put) {
		return nil, false
	}
	ret, ok := t.instAt(to + uint64(put.Len))
	return &put, ok && ret.Kind == amd64.Return
}

// fencedJump recognises what is in a thunk's place on processors that don't need it: an indirect jump behind a fence.
func (t *text) fencedJump(addr uint64) (amd64.Reg, bool) {
	for range 3 {
		in, ok := t.instAt(addr)
		switch {
		case !ok:
			return 0, false
		case in.Kind == amd64.IndirectJump:
			return amd64.Reg(in.RM), !in.HasMem
		case in.Ends():
			return 0, false
		}
		addr += uint64(in.Len)
	}
	return 0, false
}

func (t *text) instAt(addr uint64) (in amd64.Inst, ok bool) {
	ok = addr >= t.start && addr < t.end && t.decode(&in, addr, t.end)
	return in, ok
}

// replacesReturn says whether an instruction puts a register in the return address's place: mov %reg,(%rsp).
func replacesReturn(in *amd64.Inst) bool {
	return in.Encoding == amd64.Legacy && in.Map == amd64.MapPrimary && in.Opcode == 0x89 && in.REX&amd64.RexW != 0 && in.HasMem &&
		in.Base == int8(amd64.RSP) && in.Index == amd64.NoReg && in.Disp == 0
}

// thunkInLine finds out what the return insts[k] is, which goes to where a register leads (gcc -mindirect-branch=thunk-inline).
// It is an indirect call where the call by which control has come to it is called itself, by what is behind.
func (p *planner) thunkInLine(k int, s span) refusal {
	ret, put := &p.insts[k], &p.insts[k-1]
	c := k - 2
	for ; c >= s.from && put.addr-p.insts[c].addr <= thunkReach; c-- {
		if to, ok := p.insts[c].Target(p.insts[c].addr); !ok || p.insts[c].Kind != amd64.Call || to != put.addr {
			continue
		}
		call := &p.insts[c]
		if k+1 < s.to && p.insts[k+1].Kind == amd64.Call {
			if to, ok := p.insts[k+1].Target(p.insts[k+1].addr); ok && to == call.addr {
				return refusal{}
			}
		}
		call.thunk = thunk{true, true, amd64.Reg(put.Reg)}
		leaves, ok := p.leaves(c)
		switch {
		case !ok:
			return refusal{ReasonJump, ret.addr}
		case leaves:
			ret.role = roleExit
		}
		return refusal{}
	}
	return refusal{ReasonJump, ret.addr}
}

// dropsReturn says whether an instruction takes the return address off the stack: lea 8(%rsp),%rsp. The next one is then
// what the return goes by.
func dropsReturn(in *amd64.Inst) bool {
	return isLea(in) && in.REX&amd64.RexW != 0 && amd64.Reg(in.Reg) == amd64.RSP && in.Base == int8(amd64.RSP) &&
		in.Index == amd64.NoReg && in.Disp == 8
}

// markThunks notes the chunks that are thunks, those for returns included (-mfunction-return=thunk): they are linkage.
func (im *Image) markThunks() {
	each(len(im.chunks), func() func(from, to int) {
		return func(from, to int) {
			for i := from; i < to; i++ {
				c := &im.chunks[i]
				if c.end-c.start > thunkReach {
					continue
				}
				if _, ok := im.textAt(c.start).retpoline(c.start); ok || im.thunkAt(c.start).is {
					c.linkage = true
				}
			}
		}
	})
}
