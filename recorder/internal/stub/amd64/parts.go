package amd64

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/callreel/callreel/recorder/internal/hugepage"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// part is consecutive functions whose stubs one core makes.
type part struct {
	emitter
	from, to int // of the functions
	at       int // offset in the arena
	most     bounds
	slots    int // that it has at most
	err      error
}

// leastPart is of how many functions a part is at least.
const leastPart = 2048

// emitStubs appends the stubs of all functions, to a buffer that was given with space for so many bytes, or to none. Where
// there is the space each core makes a part of them: it begins behind the most that the one before may have, and what lies between is
// not touched.
func (c *coder) emitStubs(code *Code, given int) error {
	parts := c.divide(code, given)
	patches, slots := 0, 0
	for _, p := range parts {
		patches += p.most.patches
		slots += p.slots
	}
	code.Patches, code.Slots = hugepage.Make[stub.Patch](patches), hugepage.Make[stub.Slot](slots)
	patches, slots = 0, 0
	for i, p := range parts {
		own := &Code{Code: stub.Code{Base: code.Base}, fns: code.fns, stubs: code.stubs}
		own.Patches = code.Patches[patches : patches : patches+p.most.patches]
		own.Slots = code.Slots[slots : slots : slots+p.slots]
		patches += p.most.patches
		slots += p.slots
		p.emitter = emitter{coder: c, code: own}
		if i > 0 {
			p.coder = code.coder(c.base+uint64(p.at), c.Space(p.at, p.at+int(p.most.code)))
			if c.unwind != nil {
				p.unwind = &unwinding{}
			}
		}
		if c.unwind != nil {
			p.unwind.rows = hugepage.Make[unwindRow](int(p.most.rows))[:0]
		}
	}
	var wg sync.WaitGroup
	for _, p := range parts[1:] {
		wg.Go(p.emit)
	}
	parts[0].emit()
	wg.Wait()
	return c.join(code, parts)
}

// divide makes the parts.
func (c *coder) divide(code *Code, given int) []*part {
	const slack = 4096
	n := max(1, min(runtime.GOMAXPROCS(0), len(code.fns)/leastPart))
	if given == 0 {
		n = 1
	}
	parts := make([]*part, n)
	at, rows := c.Len(), 0
	for i := range parts {
		p := &part{from: i * len(code.fns) / n, to: (i + 1) * len(code.fns) / n, at: at}
		p.most = boundStubs(&code.cfg, code.fns[p.from:p.to], len(code.fns) <= InlineLimit)
		if c.cfg.Lazy {
			p.slots = p.to - p.from
		}
		at = (at + int(p.most.code) + 63) &^ 63
		rows += int(p.most.rows)
		parts[i] = p
	}
	if n > 1 && at+unwindRowSize*rows+slack > given {
		return c.divide(code, 0)
	}
	return parts
}

// emit makes the stubs of a part.
func (p *part) emit() {
	for i := p.from; i < p.to; i++ {
		p.code.stubs[i] = p.offset()
		if err := p.function(i); err != nil {
			fn := &p.code.fns[i]
			p.err = fmt.Errorf("callreel: stubs: %s+%#x (%s): %w", fn.Image.Module, fn.Addr, fn.Name, err)
			return
		}
	}
}

// join puts together what the parts have made.
func (c *coder) join(code *Code, parts []*part) error {
	patches, slots := code.Patches[:0], code.Slots[:0]
	code.Rebindings = nil
	for _, p := range parts {
		if p.err != nil {
			return p.err
		}
		patches, slots = append(patches, p.code.Patches...), append(slots, p.code.Slots...)
		code.Rebindings = append(code.Rebindings, p.code.Rebindings...)
		if c.unwind != nil {
			c.unwind.tables = append(c.unwind.tables, p.unwind.rows)
			c.unwind.hook = max(c.unwind.hook, p.unwind.hook)
		}
		if _, err := p.Finish(); err != nil {
			return fmt.Errorf("callreel: stubs: %w", err)
		}
		if size := uint64(p.offset()) - uint64(p.at); len(parts) > 1 && size > p.most.code {
			return fmt.Errorf("callreel: stubs of %d bytes where %d were expected", size, p.most.code)
		}
		c.Extend(int(p.PC() - c.PC()))
	}
	code.Patches, code.Slots = patches, slots
	return nil
}
