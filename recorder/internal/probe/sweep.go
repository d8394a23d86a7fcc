package probe

import (
	"runtime"
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
	each(len(im.chunks), func(i int) { im.sweepChunk(&im.chunks[i]) })
	gaps := im.gaps()
	each(len(gaps), func(i int) { im.sweepGap(gaps[i]) })
}

// gaps are the ranges of code that no chunk covers.
func (im *Image) gaps() []object.Range {
	var gaps []object.Range
	k := 0
	for i := range im.texts {
		t := &im.texts[i]
		at := t.start
		for ; k < len(im.chunks) && im.chunks[k].start < t.end; k++ {
			if c := &im.chunks[k]; c.start > at {
				gaps = append(gaps, object.Range{Start: at, End: c.start})
				at = c.end
			} else {
				at = max(at, c.end)
			}
		}
		if at < t.end {
			gaps = append(gaps, object.Range{Start: at, End: t.end})
		}
	}
	return gaps
}

// sweepChunk decodes a chunk from its start.
func (im *Image) sweepChunk(c *chunk) {
	t := im.textAt(c.start)
	for pc := c.start; pc < c.end; {
		in, err := amd64.Decode(t.data[pc-t.start : c.end-t.start])
		if err != nil {
			c.badAt = pc
			return
		}
		t.starts.add(pc - t.start)
		im.note(t, pc, &in, c)
		c.closed = in.Ends() || in.Kind == amd64.Call
		pc += uint64(in.Len)
	}
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
		if to >= t.start && to < t.end {
			t.targets.add(to - t.start)
		} else {
			im.markTarget(to)
		}
		if c != nil && in.Kind != amd64.Call {
			switch {
			case to == c.start:
				c.selfEntry = true
			case to < c.start || to >= c.end:
				c.jumpsOut = append(c.jumpsOut, jump{pc, to})
			}
		}
	}
	if at, ok := in.MemTarget(pc); ok {
		im.noteOperand(at, c)
	}
	if in.ImmSize == 4 && im.Object.Type == object.Executable && in.Imm > 0 {
		im.markTarget(uint64(in.Imm)) // the address of code, in an image that isn't relocated
	}
	if in.HasMem && in.DispSize == 4 && !in.RIPRelative && in.Base == amd64.NoReg && in.Disp > 0 && im.Object.Type == object.Executable {
		im.noteOperand(uint64(in.Disp), c)
	}
	if c == nil {
		return
	}
	switch in.Kind {
	case amd64.IndirectJump:
		c.indirect = append(c.indirect, pc)
	case amd64.FarBranch, amd64.XBegin:
		c.far = true
	}
}

// noteOperand notes an address that code refers to: code, or data that may be a jump table.
func (im *Image) noteOperand(at uint64, c *chunk) {
	if im.textAt(at) != nil {
		im.markTarget(at)
	}
	if c != nil && im.isReadOnlyData(at) && (len(c.bases) == 0 || c.bases[len(c.bases)-1] != at) {
		c.bases = append(c.bases, at)
	}
}

// isReadOnlyData says whether addr is in a loaded segment: jump tables stand in .rodata or .data.rel.ro, and in
// assembly in the text itself.
func (im *Image) isReadOnlyData(addr uint64) bool {
	for _, s := range im.loads {
		if addr >= s.Addr && addr-s.Addr < s.FileSize {
			return true
		}
	}
	return false
}
