package lint

import (
	"slices"
	"sort"

	"github.com/callreel/callreel/internal/ehtable"
)

// part is the code of one FDE.
type part struct {
	start, end uint64
	code       []byte
	rows       []row
	nodes      []int32            // by offset: the node of the instruction there plus one, 0 for none
	fde        int                // in the table
	abiEntry   bool               // entered by calls
	plt        bool               // a PLT whose entries jump to its first one
	stubs      bool               // a PLT of jumps only
	bKey       bool               // return addresses are signed with the B key (AArch64)
	sites      []ehtable.CallSite // by start
}

// node is one instruction of a function.
type node struct {
	inst   inst
	addr   uint64
	part   int32
	next   int32 // the node that control goes on to, or -1
	target int32 // the node that a branch leads to within the function, or -1
	table  []int32
	pad    int32 // the node that an exception thrown by the call goes on at, or -1
	leader bool  // control comes to it from elsewhere than the one before
	state  *state
	proven bool // its state comes from the function's entry and not from a row
	queued bool
	visits int32
	jumped value // the stack pointer at an indirect jump, when it was followed last
}

// function is parts that jump into each other, in the order of their addresses and without overlap, and their
// instructions.
type function struct {
	p      *processor
	parts  []part
	nodes  []node
	bad    bool     // what was decoded last is no code, or runs out of the FDE
	broken []uint64 // where no instruction was found, the first maxBroken
	ways   []bool   // by node: whether control comes there otherwise than from the one before; see findWays
	open   bool     // there are jumps of which it is not known where they lead
}

// maxBroken bounds how many places of a function are looked at again.
const maxBroken = 16

// partAt returns the part that holds an address, or -1.
func (f *function) partAt(addr uint64) int {
	k := sort.Search(len(f.parts), func(k int) bool { return f.parts[k].end > addr })
	if k == len(f.parts) || addr < f.parts[k].start {
		return -1
	}
	return k
}

// nodeAt returns the node of the instruction at an address, or -1.
func (f *function) nodeAt(addr uint64) int32 {
	k := f.partAt(addr)
	if k < 0 {
		return -1
	}
	p := &f.parts[k]
	return p.nodes[addr-p.start] - 1
}

// explore decodes what can be reached from an address and returns its node, or -1 when it is outside of the function.
func (f *function) explore(addr uint64) int32 {
	todo := []uint64{addr}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		todo = f.line(at, todo)
	}
	n := f.nodeAt(addr)
	if n >= 0 {
		f.nodes[n].leader = true
	}
	return n
}

// line decodes instructions one after the other from an address on, up to one that ends the line or is known, and adds
// to todo where the branches among them lead.
func (f *function) line(addr uint64, todo []uint64) []uint64 {
	k := f.partAt(addr)
	if k < 0 {
		return todo
	}
	p := &f.parts[k]
	last := int32(-1)
	for {
		off := addr - p.start
		if off >= uint64(len(p.code)) {
			// A call at the end does not return.
			f.bad = f.bad || last < 0 || !f.nodes[last].inst.calls()
			return todo
		}
		if known := p.nodes[off]; known != 0 {
			if last >= 0 {
				f.nodes[last].next = known - 1
			}
			f.nodes[known-1].leader = true
			return todo
		}
		id := int32(len(f.nodes))
		f.nodes = append(f.nodes, node{addr: addr, part: int32(k), next: -1, target: -1, pad: -1, leader: last < 0})
		n := &f.nodes[id]
		if !f.p.decode(&n.inst, p.code[off:], addr) {
			f.nodes = f.nodes[:id]
			f.bad = true
			if len(f.broken) < maxBroken {
				f.broken = append(f.broken, addr)
			}
			return todo
		}
		p.nodes[off] = id + 1
		if last >= 0 {
			f.nodes[last].next = id
			if f.p.joins != nil {
				f.p.joins(&f.nodes[last].inst, &n.inst)
			}
		}
		if to, ok := n.inst.leadsTo(); ok {
			todo = append(todo, to)
		}
		if ends(n, p) {
			return todo
		}
		last, addr = id, n.end()
	}
}

// end is the address behind the instruction.
func (n *node) end() uint64 { return n.addr + uint64(n.inst.size) }

// pltEntry is the size of an entry of a PLT that has a first entry of its own.
const pltEntry = 16

// ends says whether control never goes on behind a node. An entry of the PLT goes on behind its jump: the slot that the
// jump goes by leads there until it is resolved. The first entry, to which the others jump, does not.
func ends(n *node, p *part) bool {
	if n.inst.way == breakpoint {
		return true
	}
	return n.inst.ends && !(p.plt && n.addr >= p.start+pltEntry && n.inst.way == indirectJump)
}

// link finds the nodes that branches lead to, once all are decoded. It may be called again when there are more.
func (f *function) link(from int) {
	for k := from; k < len(f.nodes); k++ {
		n := &f.nodes[k]
		if to, ok := n.inst.leadsTo(); ok {
			if n.target = f.nodeAt(to); n.target >= 0 {
				f.nodes[n.target].leader = true
			}
		}
	}
}

// gaps calls yield with the first address of each run of bytes that were not decoded and are not padding, until nothing
// is left. What yield decodes is no gap afterwards. What begins where instructions have data, such as tables between the code,
// is left out.
func (f *function) gaps(yield func(part int, addr uint64)) {
	data, known := map[uint64]bool{}, 0
	for k := range f.parts {
		p := &f.parts[k]
		for off := uint64(0); off < uint64(len(p.code)); {
			if id := p.nodes[off]; id != 0 {
				off += uint64(f.nodes[id-1].inst.size)
				continue
			}
			for ; known < len(f.nodes); known++ {
				if in := &f.nodes[known].inst; in.named {
					data[in.data] = true
				}
			}
			if data[p.start+off] {
				for off < uint64(len(p.code)) && p.nodes[off] == 0 {
					off++
				}
				continue
			}
			var in inst
			if !f.p.decode(&in, p.code[off:], p.start+off) {
				off += f.p.minLen
				continue
			}
			if !in.padding {
				yield(k, p.start+off)
			}
			if p.nodes[off] == 0 { // padding, or no code
				off += uint64(in.size)
			}
		}
	}
}

// sortParts puts the parts in the order of their addresses.
func (f *function) sortParts() {
	slices.SortFunc(f.parts, func(a, b part) int {
		if a.start < b.start {
			return -1
		}
		return 1
	})
}
