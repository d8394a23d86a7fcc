package plan

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/isa/arm64"
)

// walker finds which words of a chunk, or of all parts of a function, are instructions: those that control comes to. Its buffers are reused.
type walker struct {
	im     *Image
	frames frameRows

	words []codeWord
	spans []span
	own   func(addr uint64) bool // says whether an address is inside

	order  []int // the spans by address
	labels bool  // data holds addresses inside

	todo    []int    // indexes of words that control comes to
	beyond  []uint64 // targets of tables that are outside
	jumps   []jump   // direct jumps that were reached
	budget  int      // for tables and traces
	badAt   uint64   // a word that control comes to and that is no instruction, 0 for none
	lost    uint64   // an indirect jump whose targets aren't known, 0 for none
	guessed bool     // of an indirect jump within not all targets may be known
	arrays  bool     // an indirect jump goes by an array, or in a way that isn't known
	out     []uint64
	leaving map[int]bool // of the indirect jumps that were reached: those that leave
}

// codeWord is four bytes of code.
type codeWord struct {
	addr uint64
	arm64.Inst
	role    instRole
	known   bool // it is an instruction
	reached bool // control comes to it
	live    uint8
	from    int32 // the index of the first direct jump here that was reached, plus 1; 0 for none
}

func (w *codeWord) end() uint64 { return w.addr + arm64.Len }

// calls says whether the instruction is a call.
func (w *codeWord) calls() bool { return w.Kind == arm64.Call || w.Kind == arm64.IndirectCall }

func (w *walker) begin() {
	w.words, w.spans, w.todo, w.beyond, w.jumps = w.words[:0], w.spans[:0], w.todo[:0], w.beyond[:0], w.jumps[:0]
	w.budget, w.badAt, w.lost, w.guessed, w.arrays = 0, 0, 0, false, false
	if w.leaving == nil {
		w.leaving = map[int]bool{}
	}
	clear(w.leaving)
}

// What following values back and reading tables may cost: for each part, and for each of its words. It is to bound what a made-up image can cost.
const (
	budgetOfPart = 1 << 12
	budgetOfWord = 32
)

// add takes the words from start up to end in. It reports false where they aren't aligned.
func (w *walker) add(start, end uint64) bool {
	t := w.im.textAt(start)
	if t == nil || start&3 != 0 || end < start+arm64.Len {
		return false
	}
	s := span{from: len(w.words), end: end}
	for pc := start; pc+arm64.Len <= end; pc += arm64.Len {
		n := len(w.words)
		w.words = slices.Grow(w.words, 1)[:n+1]
		in := &w.words[n]
		in.addr, in.role, in.reached, in.live, in.from = pc, rolePlain, false, 0, 0
		in.known = arm64.DecodeWord(&in.Inst, t.word(pc)) == nil
	}
	s.to = len(w.words)
	w.spans = append(w.spans, s)
	w.budget += budgetOfPart + budgetOfWord*(s.to-s.from)
	return true
}

// ordered sorts the spans by address, once all are there, and notes whether data holds labels in them.
func (w *walker) ordered() {
	w.order, w.labels = w.order[:0], false
	for i := range w.spans {
		w.order = append(w.order, i)
		if k := w.im.chunkAt(w.start(i)); k >= 0 && w.im.labelled.has(uint64(k)) {
			w.labels = true
		}
	}
	slices.SortFunc(w.order, func(a, b int) int { return cmp.Compare(w.start(a), w.start(b)) })
}

// start is the address of a span's first word.
func (w *walker) start(span int) uint64 { return w.words[w.spans[span].from].addr }

// indexOf returns the index of the word at addr, -1 for none.
func (w *walker) indexOf(addr uint64) int {
	at, found := slices.BinarySearchFunc(w.order, addr, func(i int, a uint64) int { return cmp.Compare(w.start(i), a) })
	if !found {
		at--
	}
	if at < 0 || addr&3 != 0 {
		return -1
	}
	s := w.spans[w.order[at]]
	if k := s.from + int((addr-w.words[s.from].addr)/arm64.Len); addr < s.end && k < s.to {
		return k
	}
	return -1
}

// spanOf returns the span that has words[k].
func (w *walker) spanOf(k int) span {
	at, found := slices.BinarySearchFunc(w.spans, k, func(s span, k int) int { return cmp.Compare(s.from, k) })
	if !found {
		at--
	}
	return w.spans[at]
}

// walk follows control from the start of each span, and from what is known to be the target of something else than the jumps within.
func (w *walker) walk() {
	w.ordered()
	for _, s := range w.spans {
		t := w.im.textAt(w.words[s.from].addr)
		for k := s.to - 1; k >= s.from; k-- {
			if k == s.from || t.taken.has(w.words[k].addr-t.start) {
				w.todo = append(w.todo, k)
			}
		}
	}
	var indirect []int
	for {
		for len(w.todo) > 0 {
			k := w.todo[len(w.todo)-1]
			w.todo = w.todo[:len(w.todo)-1]
			indirect = w.follow(k, indirect)
		}
		// What makes an indirect jump's target is looked for once the ways to it are known.
		if len(indirect) == 0 {
			return
		}
		k := indirect[0]
		indirect = indirect[1:]
		w.resolve(k)
	}
}

// follow goes on from word k to where control leaves the line, and appends the indirect jumps that it meets.
func (w *walker) follow(k int, indirect []int) []int {
	s := w.spanOf(k)
	called := false // the word before is a call, which may be one that doesn't return
	for ; k < s.to; k++ {
		in := &w.words[k]
		if in.reached {
			break
		}
		if !in.known || in.Kind == arm64.Undefined {
			if !called && !in.known {
				w.badAt = cmp.Or(w.badAt, in.addr)
			}
			in.reached = in.known
			break
		}
		in.reached = true
		if w.detours(in) {
			in.role = roleDetour
			continue
		}
		if to, ok := in.Target(in.addr); ok && in.Kind != arm64.Call {
			w.jumps = append(w.jumps, jump{to, k})
			w.reach(to)
			if at := w.indexOf(to); at >= 0 && w.words[at].from == 0 {
				w.words[at].from = int32(k + 1)
			}
		}
		if in.Class == arm64.Address && in.Rd() == arm64.LR { // where a context goes on that is kept for later
			w.reach(in.addr + uint64(in.Rel))
		}
		if in.Kind == arm64.IndirectJump {
			indirect = append(indirect, k)
		}
		if in.Ends() {
			break
		}
		called = in.calls() || in.Kind == arm64.Syscall
	}
	return indirect
}

// detours says whether the instruction is a jump to a veneer by which linkers keep sequences from processors that misread them (Cortex-A53 errata
// 835769 and 843419): the instruction that stood in its place, and a jump back behind it.
func (w *walker) detours(in *codeWord) bool {
	to, ok := in.Target(in.addr)
	if !ok || in.Kind != arm64.Jump || w.own(to) {
		return false
	}
	t := w.im.textAt(to)
	if t == nil || to+arm64.Len >= t.end || w.im.chunkStartsAt(to) {
		return false
	}
	var moved, back arm64.Inst
	if arm64.DecodeWord(&moved, t.word(to)) != nil || moved.Kind != arm64.Other || arm64.DecodeWord(&back, t.word(to+arm64.Len)) != nil {
		return false
	}
	next, ok := back.Target(to + arm64.Len)
	return ok && back.Kind == arm64.Jump && next == in.end()
}

// reach notes that control comes to addr, if that is inside.
func (w *walker) reach(addr uint64) bool {
	k := w.indexOf(addr)
	if k >= 0 && !w.words[k].reached {
		w.todo = append(w.todo, k)
	}
	return k >= 0
}
