package arm64

import (
	"fmt"
	"testing"
)

// A model of the memory of AArch64: all processors see one order of stores (it is other-multi-copy atomic), but each runs its instructions in
// any order that nothing forbids. What forbids it is said by before.

type access uint8

const (
	load access = iota
	store
	barrier
)

// A step is an instruction of a thread. Behind a load with stop the thread ends for which that is true of what was loaded; what it has loaded
// by guess behind that is forgotten, and it stores nothing by guess.
type step struct {
	access  access
	at      int // of memory
	value   int // of a store
	acquire bool
	release bool
	stop    func(v int) bool
}

// before says whether step i of a thread has to be done before step j can be, which comes behind it.
func before(a, b step) bool {
	switch {
	case a.access == barrier || b.access == barrier:
		return true
	case a.at == b.at:
		return true
	case a.acquire, b.release:
		return true
	case a.release && b.acquire: // of stlr and ldar
		return true
	case a.access == load && a.stop != nil && b.access == store: // a control dependency
		return true
	}
	return false
}

// A model is threads that share memory, and what must be true when all have ended: of memory, and of what each has loaded, by its steps;
// -1 for what it hasn't.
type model struct {
	threads [][]step
	memory  []int
	wrong   func(memory []int, loaded [][]int) string
}

type modelState struct {
	memory []int
	done   []uint32
	loaded [][]int
	ended  []int // behind which step a thread has ended
}

// check goes through all orders, and returns what is wrong in one of them.
func (m *model) check() (wrong string, states int) {
	s := modelState{memory: append([]int(nil), m.memory...)}
	for _, t := range m.threads {
		l := make([]int, len(t))
		for i := range l {
			l[i] = -1
		}
		s.done, s.loaded, s.ended = append(s.done, 0), append(s.loaded, l), append(s.ended, len(t)-1)
	}
	seen := map[string]bool{}
	return m.explore(&s, seen), len(seen)
}

func (m *model) explore(s *modelState, seen map[string]bool) string {
	key := fmt.Sprint(s.memory, s.done, s.loaded, s.ended)
	if seen[key] {
		return ""
	}
	seen[key] = true
	over := true
	for k, t := range m.threads {
		for j := 0; j <= s.ended[k]; j++ {
			if s.done[k]>>j&1 != 0 || !m.ready(s, k, j) {
				over = over && s.done[k]>>j&1 != 0
				continue
			}
			over = false
			next := modelState{append([]int(nil), s.memory...), append([]uint32(nil), s.done...), append([][]int(nil), s.loaded...), append([]int(nil), s.ended...)}
			next.done[k] |= 1 << j
			switch p := t[j]; p.access {
			case store:
				next.memory[p.at] = p.value
			case load:
				next.loaded[k] = append([]int(nil), s.loaded[k]...)
				v := s.memory[p.at]
				next.loaded[k][j] = v
				if p.stop != nil && p.stop(v) {
					next.ended[k] = j
					for i := j + 1; i < len(t); i++ {
						next.loaded[k][i] = -1
					}
				}
			}
			if wrong := m.explore(&next, seen); wrong != "" {
				return wrong
			}
		}
	}
	if over {
		return m.wrong(s.memory, s.loaded)
	}
	return ""
}

// ready says whether a step may be done next.
func (m *model) ready(s *modelState, k, j int) bool {
	t := m.threads[k]
	for i := range j {
		if s.done[k]>>i&1 == 0 && before(t[i], t[j]) {
			return false
		}
	}
	return true
}

func is(v int) func(int) bool  { return func(got int) bool { return got == v } }
func not(v int) func(int) bool { return func(got int) bool { return got != v } }

// The places of memory: two events of a chunk, each with a stack pointer and a word, how much is drained, and a link to the chunk.
const (
	sp0, word0, sp1, word1, drained, link, gateWord, inSlow = 0, 1, 2, 3, 4, 5, 6, 7
)

// startOver is a chunk that is filled, drained and started over by its thread.
func startOver() *model {
	m := &model{memory: make([]int, 8)}
	m.threads = [][]step{
		{ // the thread
			{access: store, at: sp0, value: 10}, {access: store, at: word0, value: 1, release: true},
			{access: store, at: sp1, value: 20}, {access: store, at: word1, value: 2, release: true},
			{access: load, at: drained, acquire: true, stop: not(2)},
			{access: store, at: drained, value: 0, release: true},
			{access: store, at: sp0, value: 30}, {access: store, at: word0, value: 3, release: true},
		},
		{ // the drain
			{access: load, at: word0, acquire: true, stop: is(0)}, {access: load, at: sp0},
			{access: load, at: word1, acquire: true, stop: is(0)}, {access: load, at: sp1},
			{access: store, at: sp0, value: 0}, {access: store, at: word0, value: 0}, {access: store, at: sp1, value: 0}, {access: store, at: word1, value: 0},
			{access: store, at: drained, value: 2, release: true},
			{access: load, at: drained, acquire: true, stop: not(0)},
			{access: load, at: word0, acquire: true, stop: is(0)}, {access: load, at: sp0},
		},
	}
	m.wrong = func(memory []int, l [][]int) string {
		took := func(word, stack int) string {
			if w := l[1][word]; w > 0 && l[1][stack] != 10*w {
				return fmt.Sprintf("event %d has the stack pointer %d", w, l[1][stack])
			}
			return ""
		}
		for _, k := range [][2]int{{0, 1}, {2, 3}, {10, 11}} {
			if w := took(k[0], k[1]); w != "" {
				return w
			}
		}
		if l[0][4] == 2 && (memory[word0] != 3 || memory[sp0] != 30) {
			return fmt.Sprintf("the third event is lost: word %d, stack pointer %d", memory[word0], memory[sp0])
		}
		return ""
	}
	return m
}

// anothers is a chunk that is drained, given back, and another thread's next, which links it.
func anothers() *model {
	m := &model{memory: make([]int, 8)}
	m.memory[sp0], m.memory[word0] = 10, 1
	m.threads = [][]step{
		{ // the other thread
			{access: load, at: drained, acquire: true, stop: is(0)}, // the pool's head
			{access: store, at: link, value: 1, release: true},
			{access: store, at: sp0, value: 20}, {access: store, at: word0, value: 2, release: true},
		},
		{ // the drain
			{access: load, at: word0, acquire: true}, {access: load, at: sp0},
			{access: store, at: sp0, value: 0}, {access: store, at: word0, value: 0},
			{access: store, at: drained, value: 1, release: true},
			{access: load, at: link, acquire: true, stop: is(0)},
			{access: load, at: word0, acquire: true, stop: is(0)}, {access: load, at: sp0},
		},
	}
	m.wrong = func(memory []int, l [][]int) string {
		switch {
		case l[1][0] != 1 || l[1][1] != 10:
			return "the first event is torn"
		case l[1][6] > 0 && (l[1][6] != 2 || l[1][7] != 20):
			return fmt.Sprintf("word %d, stack pointer %d", l[1][6], l[1][7])
		case l[0][0] == 1 && (memory[word0] != 2 || memory[sp0] != 20):
			return "the second event is lost"
		}
		return ""
	}
	return m
}

// restricting is a thread that enters the slow path while another restricts system calls.
func restricting() *model {
	m := &model{memory: make([]int, 8)}
	m.memory[gateWord] = 1
	m.threads = [][]step{
		{{access: store, at: inSlow, value: 1, release: true}, {access: barrier}, {access: load, at: gateWord}},
		{{access: store, at: gateWord, value: 0}, {access: barrier}, {access: load, at: inSlow, acquire: true}},
	}
	m.wrong = func(_ []int, l [][]int) string {
		if l[0][2] == 1 && l[1][2] == 0 {
			return "neither sees the other"
		}
		return ""
	}
	return m
}

// In no order that acquire and release allow is anything lost or torn; and all but some of them are needed.
func TestTheProtocolHoldsInAnyOrder(t *testing.T) {
	// Of each model, which steps order nothing that isn't ordered already: what follows a test of what they load are stores, or an acquire.
	spare := map[string][][2]int{
		"a chunk started over": {{0, 4}, {0, 5}, {1, 9}},
		"another's chunk":      {{0, 0}, {0, 1}, {1, 0}, {1, 5}},
		"restricting":          {{0, 0}, {1, 2}},
	}
	for name, make := range map[string]func() *model{"a chunk started over": startOver, "another's chunk": anothers, "restricting": restricting} {
		wrong, states := make().check()
		if wrong != "" {
			t.Errorf("%s: %s", name, wrong)
		}
		t.Logf("%s: %d states", name, states)
		for k, thread := range make().threads {
			for i, s := range thread {
				if !s.acquire && !s.release && s.access != barrier {
					continue
				}
				m := make()
				p := &m.threads[k][i]
				p.acquire, p.release = false, false
				if p.access == barrier {
					*p = step{access: load, at: link} // which orders nothing
				}
				wrong, _ := m.check()
				t.Logf("%s without the order of step %d of thread %d: %s", name, i, k, wrong)
				known := false
				for _, v := range spare[name] {
					known = known || v == [2]int{k, i}
				}
				if (wrong == "") != known {
					t.Errorf("%s: step %d of thread %d needs no order: %v", name, i, k, wrong == "")
				}
			}
		}
	}
}
