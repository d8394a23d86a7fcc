package why

// edges say which node of a tree a function that is called at another is: a table with open addressing, asked once a call.
type edges struct {
	slots []edgeSlot // a power of two of them, at most three quarters full
	used  int
}

type edgeSlot struct {
	edge
	to int32 // plus one; 0 where there is none
}

// slot is where an edge is, or may be put.
func (t *edges) slot(e edge) *edgeSlot {
	h := (uint64(uint32(e.parent))<<32 | uint64(e.fn)) * 0x9e3779b97f4a7c15
	mask := uint64(len(t.slots) - 1)
	for i := h >> 32 & mask; ; i = (i + 1) & mask {
		if s := &t.slots[i]; s.to == 0 || s.edge == e {
			return s
		}
	}
}

// get returns the node of an edge.
func (t *edges) get(e edge) (to int32, ok bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	s := t.slot(e)
	return s.to - 1, s.to != 0
}

// put adds an edge that isn't there yet.
func (t *edges) put(e edge, to int32) {
	if 4*t.used >= 3*len(t.slots) {
		old := t.slots
		t.slots = make([]edgeSlot, max(16, 2*len(old)))
		for _, s := range old {
			if s.to != 0 {
				*t.slot(s.edge) = s
			}
		}
	}
	*t.slot(e) = edgeSlot{e, to + 1}
	t.used++
}

// reset empties the table. One that was hardly used gives way to a smaller one, which is emptied sooner.
func (t *edges) reset() {
	if len(t.slots) > 64 && 16*t.used < len(t.slots) {
		t.slots = make([]edgeSlot, len(t.slots)/4)
	}
	clear(t.slots)
	t.used = 0
}
