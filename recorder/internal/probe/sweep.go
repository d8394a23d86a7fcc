package probe

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/object"
)

// each runs f for 0 to n-1 on all cores.
func each(n int, f func(i int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	if workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	const batch = 64
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				from := int(next.Add(batch)) - batch
				if from >= n {
					return
				}
				for i := from; i < min(from+batch, n); i++ {
					f(i)
				}
			}
		})
	}
	wg.Wait()
}

// sweepAll decodes every byte of code once: functions, and what lies between them, whose branches count as well.
func (im *Image) sweepAll() {
	each(len(im.chunks), im.sweepChunk)
	gaps := im.gaps()
	each(len(gaps), func(i int) { im.sweepGap(gaps[i]) })
}

// gaps are the ranges of code that no chunk's sweep covers.
func (im *Image) gaps() []object.Range {
	var gaps []object.Range
	k := 0
	for i := range im.texts {
		t := &im.texts[i]
		at := t.start
		for ; k < len(im.chunks) && im.chunks[k].start < t.end; k++ {
			if c := &im.chunks[k]; c.start > at {
				gaps = append(gaps, object.Range{Start: at, End: c.start})
			}
			at = max(at, im.chunks[k].swept)
		}
		if at < t.end {
			gaps = append(gaps, object.Range{Start: at, End: t.end})
		}
	}
	return gaps
}

// sweepChunk decodes a chunk from its start. Of chunks that overlap each is swept up to the next, so that no byte is
// swept twice; the rest is a gap. Where nothing says how long a function is, it goes on to the first instruction that
// doesn't fall through and that no jump inside has led beyond: what follows may be data.
func (im *Image) sweepChunk(i int) {
	c := &im.chunks[i]
	t := im.textAt(c.start)
	c.swept = c.end
	if c.overlap && i+1 < len(im.chunks) {
		c.swept = min(c.end, im.chunks[i+1].start)
	}
	reach := c.start
	for pc := c.start; pc < c.swept; {
		in, err := amd64.Decode(t.data[pc-t.start : c.swept-t.start])
		if err != nil {
			c.badAt = pc
			break
		}
		t.starts.add(pc - t.start)
		im.note(t, pc, &in, c)
		c.closed = in.Ends() || in.Kind == amd64.Call
		to, direct := in.Target(pc)
		pc += uint64(in.Len)
		if !c.guessed {
			continue
		}
		if direct && in.Kind != amd64.Call && to < c.end {
			reach = max(reach, to)
		}
		if in.Ends() && pc > reach {
			c.end, c.swept = pc, pc
			break
		}
	}
	slices.Sort(c.jumpsOut)
	c.jumpsOut = slices.Compact(c.jumpsOut)
	slices.Sort(c.bases)
	c.bases = slices.Compact(c.bases)
}

// sweepGap decodes code that nothing names, going on at the next byte where it is none.
func (im *Image) sweepGap(r object.Range) {
	t := im.textAt(r.Start)
	for pc := r.Start; pc < r.End; {
		in, err := amd64.Decode(t.data[pc-t.start : r.End-t.start])
		if err != nil {
			pc++
			continue
		}
		im.note(t, pc, &in, nil)
		pc += uint64(in.Len)
	}
}

// note takes from an instruction where it may lead. c is nil in gaps.
func (im *Image) note(t *text, pc uint64, in *amd64.Inst, c *chunk) {
	if to, ok := in.Target(pc); ok {
		switch {
		case c != nil && in.Kind != amd64.Call && to >= c.start && to < c.end:
			t.targets.add(to - t.start)
		case to >= t.start && to < t.end:
			t.take(to)
		default:
			im.markTarget(to)
		}
		if c != nil && in.Kind != amd64.Call && (to < c.start || to >= c.end) {
			c.jumpsOut = append(c.jumpsOut, to)
		}
	}
	if at, ok := in.MemTarget(pc); ok {
		im.noteOperand(at, in, c)
	}
	if im.Object.Type == object.Executable {
		im.noteAbsolute(in, c)
	}
	if c == nil {
		return
	}
	switch in.Kind {
	case amd64.FarBranch, amd64.XBegin:
		c.far = true
	}
	if in.HasMem && in.Base == int8(amd64.RSP) && in.Index == amd64.NoReg && in.Disp < 0 && !isLea(in) {
		c.redZone = true
	}
}

// noteAbsolute notes addresses in an instruction of an image that isn't relocated.
func (im *Image) noteAbsolute(in *amd64.Inst, c *chunk) {
	if in.ImmSize >= 4 && in.Imm > 0 {
		im.markTarget(uint64(in.Imm))
	}
	if in.HasMem && in.DispSize == 4 && !in.RIPRelative && in.Base == amd64.NoReg && in.Disp > 0 {
		im.noteOperand(uint64(in.Disp), in, c)
	}
}

// noteOperand notes an address that code refers to: code, or data that may be a jump table.
func (im *Image) noteOperand(at uint64, in *amd64.Inst, c *chunk) {
	if im.textAt(at) != nil {
		im.markTarget(at)
		if c != nil && !isLea(in) && !in.IsNop() {
			c.data = append(c.data, at)
		}
	}
	if c != nil && contains(im.loads, at) {
		c.bases = append(c.bases, at)
	}
}

// isLea says whether the instruction only computes an address.
func isLea(in *amd64.Inst) bool {
	return in.Encoding == amd64.Legacy && in.Map == amd64.MapPrimary && in.Opcode == 0x8D
}
