package reel

import "fmt"

// StackTops adds where the stacks of a thread begin, in order, if there are neighbours: [Pairer.Tops] of all its events. It is derived from those,
// for readers to pair alike without having read them before.
func (w *Writer) StackTops(thread uint32, tops []uint32) error {
	if len(tops) > maxTops {
		return fmt.Errorf("reel: %s: %d stacks of a thread are too many", w.name, len(tops))
	}
	b := make([]byte, frameSize)
	last := uint32(0)
	for _, sp := range tops {
		b = appendUvarint(b, uint64(sp-last))
		last = sp
	}
	return w.put(frame{kind: KindStacks, thread: thread, count: uint32(len(tops))}, b)
}

// StackTops is where the stacks of a thread are known to begin, in order; nil if nothing says so. The caller must not change it.
func (f *File) StackTops(thread uint32) []uint32 {
	if i, ok := f.byKey[thread]; ok {
		return f.threads[i].tops
	}
	return nil
}

// ReadyPairer tells a Pairer what is known of the stacks of a thread, before its first event. Goroutines' stacks have no neighbours in theirs.
func (f *File) ReadyPairer(p *Pairer, thread uint32) {
	p.pauses = f.pausesOf(thread)
	if tops := f.StackTops(thread); tops != nil || f.header.Goroutines {
		p.SetTops(tops)
		return
	}
	p.LearnTops()
}

// parseTops reads the chunk: each from the one before, which is lower.
func parseTops(payload []byte, count uint32) ([]uint32, error) {
	if count > maxTops {
		return nil, fmt.Errorf("%d stacks of a thread", count)
	}
	p := fields{b: payload}
	var tops []uint32
	at := uint64(0)
	for i := range count {
		d := p.uvarint()
		if p.err != nil {
			return nil, p.err
		}
		if at += d; d > 1<<32-1 || at > 1<<32-1 || i > 0 && d == 0 {
			return nil, fmt.Errorf("stack %d is out of order", i+1)
		}
		tops = append(tops, uint32(at))
	}
	return tops, nil
}
