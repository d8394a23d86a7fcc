package sampler

import (
	"cmp"
	"encoding/binary"
	"os"
	"slices"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/process/perf"
	"github.com/callreel/callreel/unwind"
)

// sampledProcess is a process as samples of it need it.
type sampledProcess struct {
	files *sampledFiles
	pid   uint32
	name  string
	p     *process.Process // nil when it is gone, or not ours to look at
	lent  bool             // p belongs to somebody else
	used  uint64           // the number of the last sample

	// What is mapped: by /proc as far as there was time to look, then by events.
	base   []region
	told   []region
	stale  bool // something was mapped since
	space  *space
	jit    *jitNames // nil before a sample was in code without an image
	images sampledImages
	memory sampledMemory
	walker *unwind.Walker
	sample unwind.Snapshot
	chain  []uint64
	frames []unwind.Frame

	known   map[string]int32 // stacks by their addresses: index in Profile.Stacks
	version int              // of the names in jit that they go by
	key     []byte
}

// maxTold bounds the mappings that only events tell of.
const maxTold = 1 << 12

// look opens the process, if it is still there.
func (s *sampledProcess) look() {
	if p, err := process.Open(int(s.pid)); err == nil {
		s.p, s.name = p, p.Comm()
	}
}

// close lets go of the process. Its files stay open for names.
func (s *sampledProcess) close(t *stackTable) {
	if s.jit != nil {
		t.name(s.jit)
		s.jit.close()
		if err := s.jit.problem(); err != nil {
			s.files.problems = append(s.files.problems, err)
		}
		s.jit = nil
	}
	if s.p != nil && !s.lent {
		_ = s.p.Close() // only read from
	}
	s.p, s.lent = nil, false
}

// adopt takes a process that somebody else has open, and opens its files at once: it may
// have ended when the first sample is looked at.
func (s *sampledProcess) adopt(p *process.Process) {
	s.p, s.lent, s.name = p, true, p.Comm()
	s.refresh()
	for _, im := range s.space.images {
		im.ready()
	}
	s.stale = true // from now on
}

// executed forgets all: the process runs a new program.
func (s *sampledProcess) executed(t *stackTable) {
	s.close(t) // what is open leads to the old program's memory
	s.base, s.told, s.space, s.walker = nil, nil, nil, nil
	clear(s.known)
	s.look()
}

// renamed changes the name that stacks are found under.
func (s *sampledProcess) renamed(name string) {
	if name != s.name {
		s.name = name
		clear(s.known)
	}
}

// mapped notes a new mapping of code. One that takes the place of another makes what is
// known of the addresses wrong; others are looked at when a walk needs them.
func (s *sampledProcess) mapped(r *perf.Record) {
	m := region{start: r.Addr, end: r.Addr + r.Len, offset: r.Offset, page: uint64(os.Getpagesize()), exec: true, dev: r.Dev, inode: r.Inode}
	if m.end <= m.start {
		return
	}
	switch {
	case r.Inode != 0:
		m.path = string(r.Name)
	case string(r.Name) == "[vdso]":
		m.special = "[vdso]"
	}
	if len(s.told) < maxTold {
		s.told = append(s.told, m)
	}
	s.stale = true
	if s.space == nil {
		return
	}
	for k := range s.space.regions {
		if old := &s.space.regions[k]; old.start < m.end && m.start < old.end && old.hasFile() && !old.sameFile(&m) {
			s.refresh()
			return
		}
	}
}

// refresh reads what is mapped where.
func (s *sampledProcess) refresh() {
	s.stale = false
	var regions []region
	if s.p != nil {
		if maps, err := s.p.Maps(); err == nil && len(maps) > 0 {
			regions = regionsOf(maps)
		}
	}
	if regions == nil {
		regions = overlay(s.base, s.told)
	}
	s.base, s.told = regions, nil
	s.space = newSpace(regions, s.files.opener(s.p), s.space)
	s.images = sampledImages{mapped: s.space.mapped}
	s.memory.images, s.memory.p, s.memory.regs = &s.images, s.p, &s.sample.Regs
	if s.walker == nil {
		s.walker = unwind.NewWalker(unwind.Host(), &s.images, unwind.Options{MaxFrames: s.files.maxFrames})
	} else {
		s.walker.SetImages(&s.images)
	}
	clear(s.known)
}

func regionsOf(maps []process.Mapping) []region {
	page := uint64(os.Getpagesize())
	out := make([]region, len(maps))
	for k, m := range maps {
		out[k] = region{
			start: m.Start, end: m.End, offset: m.Offset, page: page, path: m.Path, special: m.Special, deleted: m.Deleted,
			exec: m.Perm&process.PermExec != 0, write: m.Perm&process.PermWrite != 0, dev: m.Dev, inode: m.Inode,
		}
	}
	return out
}

// overlay puts newer mappings over older ones.
func overlay(base, told []region) []region {
	var out []region
	for k := len(told) - 1; k >= 0; k-- { // the newest first
		out = lay(out, told[k])
	}
	newer := len(out)
	for _, r := range base {
		if !slices.ContainsFunc(out[:newer], func(o region) bool { return o.start < r.end && r.start < o.end }) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b region) int { return cmp.Compare(a.start, b.start) })
	return out
}

// lay adds a mapping unless a newer one has taken its place.
func lay(over []region, r region) []region {
	for k := range over {
		if over[k].start < r.end && r.start < over[k].end {
			return over
		}
	}
	return append(over, r)
}

// walk walks a sample's stack and returns its index in the table.
func (s *sampledProcess) walk(r *perf.Record, t *stackTable) int32 {
	if r.ABI != perf.Bits64 {
		end := unwind.Complete // a thread that is not in a program has no frames there
		if r.ABI == perf.Bits32 {
			end = unwind.NoCFI
		}
		return t.find(s.name, r.Kernel, end, nil)
	}
	if s.space == nil {
		s.refresh()
	}
	end := s.follow(r)
	if s.stale && (!end.Complete() || s.strange()) {
		s.refresh()
		end = s.follow(r)
	}
	// The addresses that frames are named by tell stacks apart; see unwind.Frame.
	s.key = append(s.key[:0], byte(end.Reason), truth(r.Kernel))
	for k := range s.frames {
		s.key = binary.LittleEndian.AppendUint64(s.key, codeAddr(&s.frames[k]))
	}
	if s.jit.update(); s.jit != nil && s.jit.version != s.version {
		s.version = s.jit.version
		clear(s.known)
	}
	at, known := s.known[string(s.key)]
	if !known {
		at = s.resolve(r, end, t)
		if !t.full() {
			s.known[string(s.key)] = at
		}
	}
	return at
}

// follow walks by what is known now.
func (s *sampledProcess) follow(r *perf.Record) unwind.End {
	sp := r.Regs[perf.SP]
	s.images.start, s.images.end = sp-min(sp, unwind.Host().RedZone()), sp+uint64(len(r.Stack))
	s.chain = s.chain[:0]
	for at := 0; at+8 <= len(r.Chain); at += 8 {
		if pc := binary.NativeEndian.Uint64(r.Chain[at:]); pc < perf.ContextMax {
			s.chain = append(s.chain, pc)
		}
	}
	s.sample = unwind.Snapshot{Regs: registersOf(r), Stack: r.Stack, Addr: sp, Memory: &s.memory, Chain: s.chain, Frozen: true}
	var end unwind.End
	s.frames, end = s.walker.Walk(&s.sample, s.frames[:0])
	s.sample.Stack = nil // it is the ring's
	return end
}

// strange says whether a frame is in code that no mapping is known for.
func (s *sampledProcess) strange() bool {
	for k := range s.frames {
		if _, ok := s.images.mapped.Mapping(codeAddr(&s.frames[k])); !ok {
			return true
		}
	}
	return false
}

// resolve adds a stack that was not seen in the process before.
func (s *sampledProcess) resolve(r *perf.Record, end unwind.End, t *stackTable) int32 {
	frames := s.frames
	if t.full() {
		frames, end = frames[:min(len(frames), tooManyStacksAt)], unwind.End{Reason: unwind.TooDeep}
	}
	t.ids = t.ids[:0]
	for k := range frames {
		addr := codeAddr(&frames[k])
		im := s.space.image(addr)
		if im == nil || !im.ready() {
			if s.jit == nil {
				s.jit = &jitNames{p: s.p}
			}
			t.ids = append(t.ids, t.made(s.jit, s.files.first(im), addr))
			continue
		}
		first := s.files.first(im)
		link := addr - im.Slide()
		t.ids = append(t.ids, t.location(first, link, link+first.Slide()))
	}
	return t.find(s.name, r.Kernel, end.Reason, t.ids)
}

// codeAddr is the address that names a frame. A signal trampoline is found by its first
// byte, which the handler returns to.
func codeAddr(f *unwind.Frame) uint64 {
	if f.Has(unwind.SignalFrame) {
		return f.PC
	}
	return f.CodeAddr()
}

// byDWARF are the places of registers in samples.
var byDWARF = perf.ByDWARF()

// registersOf turns a sample's registers into DWARF's.
func registersOf(r *perf.Record) unwind.Registers {
	var out unwind.Registers
	for reg, at := range byDWARF {
		out.Set(reg, r.Regs[at])
	}
	out.PC = r.Regs[perf.IP]
	return out
}

// inherit takes over what is mapped in the process that has forked this one, for the case
// that it is gone before it can be looked at.
func (s *sampledProcess) inherit(parent *sampledProcess) {
	s.base, s.told = parent.base, append([]region(nil), parent.told...)
	if s.p == nil {
		s.name = parent.name
	}
}
