package dwarf

// enter takes in a function or an inlined call. It returns true when it has made a
// frame: then depth is that of the children.
func (r *reader) enter(a *abbrev, b []byte, start, values, depth int) bool {
	top := &r.frames[len(r.frames)-1]
	if a.kind == kindInline && top.function < 0 {
		return false // of an abstract instance, or of code that was dropped
	}
	e := &r.entry
	if !r.table.take(a, b, values, r.unit.source.big, e) {
		return false
	}
	f := frame{depth: depth - 1, function: top.function, inline: -1, live: top.live}
	if a.kind == kindInline {
		f.level = top.level + 1
		f.inline = r.addInline(start, e, f.level)
	} else {
		f.function = r.addFunction(start, e)
		f.live = f.live || f.function >= 0
	}
	if a.children <= 0 {
		r.finish(&f, top)
		return false
	}
	r.frames = append(r.frames, f)
	return true
}

// addFunction appends a function and returns its index, -1 when it has no code.
func (r *reader) addFunction(start int, e *entry) int32 {
	ranges := r.addRanges(start, e)
	if ranges.Count == 0 {
		return -1
	}
	n := r.named(r.unit, &r.root, e)
	f := Function{Name: n.best(), Ranges: ranges}
	f.Inlines.First = uint32(len(r.contents.Inlines))
	if n.declUnit == r.unit { // other units have other line tables
		f.File, f.Line = r.lines.file(n.declFile), clip(n.declLine)
	}
	r.budget -= functionCost
	r.contents.Functions = append(r.contents.Functions, f)
	return int32(len(r.contents.Functions) - 1)
}

// addInline appends an inlined call and returns its index.
func (r *reader) addInline(start int, e *entry, level uint32) int32 {
	n := r.named(r.unit, &r.root, e)
	call := Inline{Name: n.best(), Ranges: r.addRanges(start, e), Depth: level}
	if e.has(slotCallFile) {
		call.CallFile = r.lines.file(e.val[slotCallFile])
	}
	if e.has(slotCallLine) {
		call.CallLine = clip(e.val[slotCallLine])
	}
	r.budget -= inlineCost
	r.contents.Inlines = append(r.contents.Inlines, call)
	return int32(len(r.contents.Inlines) - 1)
}

// leave ends the innermost frame and returns the depth at which the next one ends.
func (r *reader) leave() int {
	n := len(r.frames) - 1
	r.finish(&r.frames[n], &r.frames[n-1])
	r.frames = r.frames[:n]
	return r.frames[n-1].depth
}

// leaveAll ends the frames that damage has left open.
func (r *reader) leaveAll() {
	for len(r.frames) > 1 {
		r.leave()
	}
}

// finish completes what a frame stands for. Inlined calls without code, which
// optimizers leave behind, are taken back unless others are in them.
func (r *reader) finish(f, parent *frame) {
	c := r.contents
	switch {
	case f.function < 0:
	case f.inline < 0:
		r.finishFunction(&c.Functions[f.function], uint32(f.function), parent.live)
	case int(f.inline) == len(c.Inlines)-1 && c.Inlines[f.inline].Ranges.Count == 0:
		c.Inlines = c.Inlines[:f.inline]
	}
}

// finishFunction counts a function's inlined calls. Those of a function that stands
// inside another one (nested functions of GNU C, Ada, Fortran) are set aside until
// the outer one ends, so that the outer one's stay together.
func (r *reader) finishFunction(f *Function, index uint32, isNested bool) {
	c := r.contents
	calls := c.Inlines[f.Inlines.First:]
	f.Inlines.Count = uint32(len(calls))
	if isNested {
		c.Inlines = c.Inlines[:f.Inlines.First]
		f.Inlines.First = uint32(len(r.nested))
		r.nested = append(r.nested, calls...)
		r.inner = append(r.inner, index)
		return
	}
	if len(r.inner) == 0 {
		return
	}
	for _, k := range r.inner {
		c.Functions[k].Inlines.First += uint32(len(c.Inlines))
	}
	c.Inlines = append(c.Inlines, r.nested...)
	r.nested, r.inner = r.nested[:0], r.inner[:0]
}

// clip makes a line number of a value that may be crafted.
func clip(v uint64) uint32 { return uint32(min(v, 1<<32-1)) }
