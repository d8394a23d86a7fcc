package reel

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"slices"
	"sort"
)

// Bounds of what is read.
const (
	maxMarkers = 1 << 20
	maxPauses  = 1 << 16
)

func (f *File) loadMarkers(payload []byte, count uint32) error {
	d := fields{b: payload}
	first := d.uvarint()
	// Markers before these may be lost.
	if d.err != nil || first <= uint64(len(f.markers)) || first > uint64(len(f.markers))+1<<12 || first+uint64(count) > maxMarkers {
		return fmt.Errorf("marker %d follows marker %d", first, len(f.markers))
	}
	f.markers = append(f.markers, make([]Marker, int(first)-1-len(f.markers))...)
	for range count {
		m := Marker{Provider: d.string(), Name: d.string(), Title: d.string(), Pair: d.string(), Category: d.string()}
		if !d.more() {
			return errShortField
		}
		m.Kind, d.b = MarkKind(d.b[0]), d.b[1:]
		m.Image, m.Addr = ImageID(d.uint32()), d.uvarint()
		for _, at := range [...]*int{&m.TitleArg, &m.IDArg, &m.ValueArg} {
			*at = int(min(d.uvarint(), maxArguments)) - 1
		}
		_ = d.uvarint() // see appendArguments
		args, err := parseArgumentList(&d)
		if err != nil {
			return err
		}
		if m.Arguments = args; m.Kind == 0 || m.Kind > lastMarkKind {
			return fmt.Errorf("a marker of %v", m.Kind)
		}
		f.markers = append(f.markers, m)
	}
	return d.err
}

// pauseKey tells a pause that has begun from others.
type pauseKey struct {
	from    uint64
	process int
}

func (f *File) loadPause(payload []byte) error {
	d := fields{b: payload}
	p := Pause{From: d.uvarint(), To: d.uvarint(), Process: int(d.uint32()), By: d.string()}
	switch {
	case d.err != nil:
		return d.err
	case p.To != 0 && p.To < p.From || len(f.pauses) >= maxPauses:
		return errors.New("a pause that ends before it begins, or one too many")
	}
	f.lastTick = max(f.lastTick, p.To)
	key := pauseKey{p.From, p.Process}
	if i, begun := f.begun[key]; begun { // it has ended
		f.pauses[i].To = p.To
		delete(f.begun, key)
		return nil
	}
	if p.To == 0 {
		if f.begun == nil {
			f.begun = map[pauseKey]int{}
		}
		f.begun[key] = len(f.pauses)
	}
	f.pauses = append(f.pauses, p)
	return nil
}

func (f *File) addMarks(e *indexEntry) {
	t := f.thread(e.thread)
	t.marks = append(t.marks, *e)
	f.lastTick = max(f.lastTick, e.last)
	f.marks += min(uint64(e.count), 4*uint64(e.length)) // each takes two bits at least
}

// Markers are the reel's; that with the ID i is the one at i-1. The caller must not change them. A marker of kind 0 was lost.
func (f *File) Markers() []Marker { return f.markers }

// Marker is the one with an ID; ok is false if there is none.
func (f *File) Marker(id uint32) (m *Marker, ok bool) {
	if id == 0 || uint64(id) > uint64(len(f.markers)) || f.markers[id-1].Kind == 0 {
		return nil, false
	}
	return &f.markers[id-1], true
}

// HasMarks says whether any marks were recorded.
func (f *File) HasMarks() bool { return f.marks > 0 }

// MarkCount is how many marks of all threads there are.
func (f *File) MarkCount() uint64 { return f.marks }

// Pauses are the times in which nothing was recorded because somebody had asked for that, in order.
func (f *File) Pauses() []Pause {
	list := slices.Clone(f.pauses)
	slices.SortStableFunc(list, func(a, b Pause) int { return cmp.Compare(a.From, b.From) })
	return list
}

// pausesOf is when pauses of a thread began, in order. The slice is shared.
func (f *File) pausesOf(thread uint32) (from []uint64) {
	if len(f.pauses) == 0 || f.header.Clock.Mode != ClockFull {
		return nil
	}
	process := 0
	if i, ok := f.byKey[thread]; ok {
		process = f.threads[i].Process
	}
	f.paused.Lock()
	defer f.paused.Unlock()
	if f.paused.of != len(f.pauses) {
		at := map[int][]uint64{}
		for i := range f.pauses {
			p := &f.pauses[i]
			at[p.Process] = append(at[p.Process], p.From)
		}
		for _, list := range at {
			slices.Sort(list)
		}
		f.paused.of, f.paused.at = len(f.pauses), at
	}
	all, own := f.paused.at[0], f.paused.at[process]
	switch {
	case process == 0 || len(own) == 0:
		return all
	case len(all) == 0:
		return own
	}
	from = slices.Concat(all, own)
	slices.Sort(from)
	return from
}

// Marks reads the marks of a thread, by its key, in order of time. Of a thread without any there are none to read.
func (f *File) Marks(thread uint32) *MarkReader {
	r := &MarkReader{f: f}
	if i, ok := f.byKey[thread]; ok {
		r.chunks = f.threads[i].marks
	}
	return r
}

// MarkReader goes forward through the marks of a thread. It is for one goroutine at a time.
type MarkReader struct {
	f      *File
	chunks []indexEntry
	next   int
	left   uint32
	bits   bitReader
	values fields
	coder  markCoder
	mark   Mark
	peeked bool // mark is given next
}

// Next returns the next mark; ok is false behind the last one. Its Values are valid until the next call. Damage costs the chunk that it is in.
func (r *MarkReader) Next() (m *Mark, ok bool) {
	if r.peeked {
		r.peeked = false
		return &r.mark, true
	}
	for {
		for r.left == 0 {
			if r.next == len(r.chunks) {
				return nil, false
			}
			r.open()
		}
		r.left--
		if err := CatchFaults(r.decode); err != nil {
			r.damaged(err)
			continue
		}
		return &r.mark, true
	}
}

// Seek makes Next go on with the first mark that is no earlier than the tick.
func (r *MarkReader) Seek(tick uint64) {
	r.next = sort.Search(len(r.chunks), func(i int) bool { return r.chunks[i].last >= tick })
	r.left, r.peeked = 0, false
	for {
		m, ok := r.Next()
		if !ok {
			return
		}
		if m.Time >= tick {
			r.peeked = true
			return
		}
	}
}

func (r *MarkReader) decode() error {
	if err := r.coder.next(&r.bits, &r.mark); err != nil {
		return err
	}
	m, ok := r.f.Marker(r.mark.Marker)
	if !ok {
		return fmt.Errorf("of marker %d, which there is not", r.mark.Marker)
	}
	return r.coder.values(&r.values, &r.mark, len(m.Arguments))
}

// open begins a chunk.
func (r *MarkReader) open() {
	e := &r.chunks[r.next]
	r.next++
	err := CatchFaults(func() error {
		payload, err := r.f.payload(e)
		if err != nil {
			return err
		}
		d := fields{b: payload}
		shift, start := d.uvarint(), d.uvarint()
		coded := d.bytes()
		if d.err != nil {
			return d.err
		}
		if shift > 32 || uint64(e.count) > 4*uint64(len(coded)) || start > 1<<(64-shift)-1 {
			return errors.New("its count, or the unit of its times, is out of range")
		}
		r.coder = newMarkCoder(uint(shift), start, r.f.header.Goroutines)
		r.bits, r.values, r.left = bitReader{b: coded}, fields{b: d.b}, e.count
		return nil
	})
	if err != nil {
		r.damaged(err)
	}
}

func (r *MarkReader) damaged(err error) {
	e := &r.chunks[r.next-1]
	r.f.damage.add(Damage{Offset: e.offset, Len: frameSize + int64(e.length), What: fmt.Sprintf("%v: of %d marks not all can be read: %v", e.kind, e.count, err)})
	r.left = 0
}

// AllMarks gives the marks of all threads in order of time, until yield returns false. The mark is valid until yield returns.
func (f *File) AllMarks(yield func(thread uint32, m *Mark) bool) {
	var h markHeap
	for i := range f.threads {
		if len(f.threads[i].marks) == 0 {
			continue
		}
		r := f.Marks(f.threads[i].Key)
		if m, ok := r.Next(); ok {
			h = append(h, markHead{m, r, f.threads[i].Key})
		}
	}
	heap.Init(&h)
	for len(h) > 0 {
		x := &h[0]
		if !yield(x.thread, x.mark) {
			return
		}
		m, ok := x.from.Next()
		if !ok {
			heap.Pop(&h)
			continue
		}
		x.mark = m
		heap.Fix(&h, 0)
	}
}

type markHead struct {
	mark   *Mark
	from   *MarkReader
	thread uint32
}

// markHeap has the thread with the earliest mark first.
type markHeap []markHead

func (h markHeap) Len() int { return len(h) }
func (h markHeap) Less(i, j int) bool {
	if a, b := h[i].mark.Time, h[j].mark.Time; a != b {
		return a < b
	}
	return h[i].thread < h[j].thread
}
func (h markHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *markHeap) Push(x any)   { *h = append(*h, x.(markHead)) }
func (h *markHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
