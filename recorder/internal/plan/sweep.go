package plan

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/hugepage"
)

// sweep is what the linear sweep of a batch of chunks found, for each chunk.
type sweep struct {
	jumpsOut lists // where direct jumps that leave the chunk go, sorted
	bases    lists // RIP-relative addresses of data, sorted: possible jump table bases
	data     lists // addresses of code that instructions read or write
	tables   lists // see tablesIn
}

// jumpsOut is where direct jumps go that leave the chunk, sorted.
func (im *Image) jumpsOut(chunk int) []uint64 { return im.swept[chunk/batchSize].jumpsOut.of(chunk) }

// bases are the RIP-relative addresses of data in the chunk, sorted.
func (im *Image) bases(chunk int) []uint64 { return im.swept[chunk/batchSize].bases.of(chunk) }

// sweepAll decodes every byte of code once: functions, and what lies between them, whose branches count as well.
func (im *Image) sweepAll() {
	im.swept = hugepage.Make[sweep](batches(len(im.chunks)))
	each(len(im.chunks), func() func(from, to int) {
		s := sweeper{im: im}
		return func(from, to int) {
			for i := from; i < to; i++ {
				s.sweepChunk(i)
				s.keep(i)
				s.sweepGaps(i)
			}
		}
	})
	s := sweeper{im: im}
	for i := range im.texts {
		if t := &im.texts[i]; im.chunkAfter(t.start) == im.chunkAfter(t.end) {
			s.sweepGap(t, t.start, t.end)
		}
	}
}

// chunkAfter returns the index of the first chunk that starts at addr or behind it.
func (im *Image) chunkAfter(addr uint64) int {
	i, _ := slices.BinarySearchFunc(im.chunks, addr, func(c chunk, a uint64) int { return cmp.Compare(c.start, a) })
	return i
}

// sweptEnd is where the sweep of a chunk ends. Of chunks that overlap each is swept up to the next, so that no byte is swept
// twice; the rest is a gap.
func (im *Image) sweptEnd(i int) uint64 {
	c := &im.chunks[i]
	if c.overlap && i+1 < len(im.chunks) {
		return min(c.end, im.chunks[i+1].start)
	}
	return c.end
}

// sweeper sweeps one chunk or gap at a time.
type sweeper struct {
	im *Image
	t  *text
	c  *chunk // nil in a gap

	jumpsOut, bases, data, tables []uint64 // of the chunk, as in sweep
	labels                        []uint64 // that were noted in it, see noteLabel
}

// sweepChunk decodes a chunk from its start. Where nothing says how long a function is, it goes on to the first instruction
// that doesn't fall through and that no jump inside has led beyond: what follows may be data.
func (s *sweeper) sweepChunk(i int) {
	c := &s.im.chunks[i]
	t := s.im.textAt(c.start)
	s.c, s.t = c, t
	s.jumpsOut, s.bases, s.data, s.tables = s.jumpsOut[:0], s.bases[:0], s.data[:0], s.tables[:0]
	s.labels = s.labels[:0]
	end := s.im.sweptEnd(i)
	reach := c.start
	starts := adder{set: t.starts}
	defer starts.flush()
	var in amd64.Inst
	for pc := c.start; pc < end; {
		if !t.decode(&in, pc, end) {
			c.badAt = pc
			break
		}
		starts.add(pc - t.start)
		s.note(pc, &in)
		c.closed = in.Ends() || in.Kind == amd64.Call || c.closed && in.IsNop()
		at := pc
		pc += uint64(in.Len)
		if !c.guessed {
			if in.Ends() && len(s.labels) > 0 {
				if to := s.behindTable(pc, end); to != 0 {
					s.tables = append(s.tables, pc, to)
					pc = to
				}
			}
			continue
		}
		if to, direct := in.Target(at); direct && in.Kind != amd64.Call && to < c.end {
			reach = max(reach, to)
		}
		if in.Ends() && pc > reach {
			c.end = pc
			break
		}
	}
}

// keep takes what was found in chunk i over.
func (s *sweeper) keep(i int) {
	slices.Sort(s.jumpsOut)
	slices.Sort(s.bases)
	found := &s.im.swept[i/batchSize]
	found.jumpsOut.put(i, slices.Compact(s.jumpsOut))
	found.bases.put(i, slices.Compact(s.bases))
	found.data.put(i, s.data)
	found.tables.put(i, s.tables)
}

// sweepGaps sweeps what lies between chunk i and the next, and before the first of a text.
func (s *sweeper) sweepGaps(i int) {
	t, end := s.t, s.t.end
	if i == 0 || s.im.chunks[i-1].start < t.start {
		s.sweepGap(t, t.start, s.im.chunks[i].start)
	}
	if i+1 < len(s.im.chunks) {
		end = min(end, s.im.chunks[i+1].start)
	}
	s.sweepGap(t, s.im.sweptEnd(i), end)
}

// sweepGap decodes code that nothing names, going on at the next byte where it is none.
func (s *sweeper) sweepGap(t *text, pc, end uint64) {
	s.c, s.t = nil, t
	var in amd64.Inst
	for pc < end {
		if !t.decode(&in, pc, end) {
			pc++
			continue
		}
		s.note(pc, &in)
		pc += uint64(in.Len)
	}
}

// note takes from an instruction where it may lead.
func (s *sweeper) note(pc uint64, in *amd64.Inst) {
	c := s.c
	if to, ok := in.Target(pc); ok {
		switch {
		case c != nil && in.Kind != amd64.Call && to >= c.start && to < c.end:
			s.t.targets.add(to - s.t.start)
		case to >= s.t.start && to < s.t.end:
			s.t.take(to)
		default:
			s.im.markTarget(to)
		}
		if g := s.im.Go; g != nil && in.Kind == amd64.Call && to == g.DeferReturn {
			s.t.take(pc)
		}
		if c != nil && in.Kind != amd64.Call && (to < c.start || to >= c.end) {
			s.jumpsOut = append(s.jumpsOut, to)
		}
	}
	if at, ok := in.MemTarget(pc); ok {
		s.noteOperand(at, in)
	}
	if s.im.Object.Type == object.Executable {
		s.noteAbsolute(in)
	}
	if c == nil {
		return
	}
	s.noteLabel(pc, in)
	switch in.Kind {
	case amd64.FarBranch, amd64.XBegin:
		c.far = true
	}
	if in.HasMem && in.Base == int8(amd64.RSP) && in.Index == amd64.NoReg && in.Disp < 0 && !isLea(in) {
		c.redZone = true
	}
}

// noteAbsolute notes addresses in an instruction of an image that isn't relocated.
func (s *sweeper) noteAbsolute(in *amd64.Inst) {
	if in.ImmSize >= 4 && in.Imm > 0 {
		s.im.markTarget(uint64(in.Imm))
	}
	if in.HasMem && in.DispSize == 4 && !in.RIPRelative && in.Base == amd64.NoReg && in.Disp > 0 {
		s.noteOperand(uint64(in.Disp), in)
	}
}

// noteOperand notes an address that code refers to: code, or data that may be a jump table.
func (s *sweeper) noteOperand(at uint64, in *amd64.Inst) {
	if s.im.textAt(at) != nil {
		s.im.markTarget(at)
		if s.c != nil && !isLea(in) && !in.IsNop() {
			s.data = append(s.data, at)
		}
	}
	if s.c != nil && contains(s.im.loads, at) {
		s.bases = append(s.bases, at)
	}
}

// isLea says whether the instruction only computes an address.
func isLea(in *amd64.Inst) bool {
	return in.Encoding == amd64.Legacy && in.Map == amd64.MapPrimary && in.Opcode == 0x8D
}
