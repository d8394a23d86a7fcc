package golang

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/callreel/callreel/object"
)

// made is memory that a test has made, from address base on.
type made struct {
	base uint64
	data []byte
}

func (m *made) ReadAt(buf []byte, addr uint64) (int, error) {
	n := m.ReadUpTo(buf, addr)
	if n < len(buf) {
		return n, io.ErrUnexpectedEOF
	}
	return n, nil
}

func (m *made) ReadUpTo(buf []byte, addr uint64) int {
	if addr < m.base || addr-m.base > uint64(len(m.data)) {
		return 0
	}
	return copy(buf, m.data[addr-m.base:])
}

func (m *made) put(addr uint64, words ...uint64) {
	for i, w := range words {
		binary.LittleEndian.PutUint64(m.data[addr-m.base+8*uint64(i):], w)
	}
}

const (
	madeList   = 0x10000 // a slice header
	madeFirst  = 0x10100 // what it leads to
	madeG      = 0x10400 // goroutine 1, and others from here on, a KiB each
	madeStacks = 0x12000
	madeRet    = 0x401234
)

// threeGoroutines are: one that waits where it was preempted at 0x400100, one that runs and was preempted at 0x400200 some time, and one
// that is over, on whose stack such a frame is left.
func threeGoroutines() (*Goroutines, *made) {
	m := &made{0x10000, make([]byte, 0x8000)}
	gs := &Goroutines{mem: m, goid: 152, list: madeList, frame: asyncFrame{ret: madeRet, above: 24, code: object.Range{Start: 0x401200, End: 0x401300}}}
	m.put(madeList, madeFirst, 3, 4)
	for i, status := range []uint64{4, gRunning, gDead} {
		g, stack := madeG+0x400*uint64(i), madeStacks+0x1000*uint64(i)
		m.put(madeFirst+8*uint64(i), g)
		m.put(g+StackLo, stack, stack+0x1000)
		m.put(g+gSchedSP, stack+0x800)
		m.put(g+gs.goid-8, status, uint64(i+1))
		m.put(stack+0x840, madeRet)
		m.put(stack+0x840+24, 0x400100*1+0x100*uint64(i))
	}
	return gs, m
}

func TestPreemptedGoroutinesAreFound(t *testing.T) {
	gs, m := threeGoroutines()
	look := func(threads ...Thread) (found []uint64, err error) {
		err = gs.Preempted(threads, func(g, pc uint64) { found = append(found, g, pc) })
		return found, err
	}
	runs := Thread{ID: 7, G: madeG + 0x400}
	if found, err := look(runs); err != nil || !slices.Equal(found, []uint64{1, 0x400100, 2, 0x400200}) {
		t.Errorf("%#x, %v", found, err)
	}
	if found, err := look(); err != nil || found != nil {
		t.Errorf("before the runtime has begun: %#x, %v", found, err)
	}
	// Of one that waits only what is near its stack pointer counts.
	m.put(madeG+gSchedSP, madeStacks+0x900)
	if found, err := look(runs); err != nil || !slices.Equal(found, []uint64{2, 0x400200}) {
		t.Errorf("above the frame: %#x, %v", found, err)
	}
	m.put(madeList+8, 1)
	if found, err := look(runs); !errors.Is(err, ErrUnlisted) || found != nil {
		t.Errorf("one that runs isn't in the list: %#x, %v", found, err)
	}
	m.put(madeList+8, maxGoroutines+1, maxGoroutines+1)
	if _, err := look(runs); !errors.Is(err, ErrTooMany) {
		t.Errorf("a very long list: %v", err)
	}
}

// A thread's data may be anything.
func TestThreadsThatArentGos(t *testing.T) {
	const pointer = 0x10400
	for _, c := range []struct {
		name            string
		id, g, m, stack uint64
		known           bool
		err             error
	}{
		{name: "as it should be", id: 7, g: 0x10800, m: pointer - 136, stack: 0x10A00, known: true},
		{name: "no stack for signals yet", id: 7, g: 0x10800, m: pointer - 136, known: true},
		{name: "no ID yet", g: 0x10800, m: pointer - 136},
		{name: "no goroutine yet", id: 7},
		{name: "a bad pointer to g", id: 7, g: 1 << 50, err: ErrUnexpected},
		{name: "another's m", id: 7, g: 0x10800, m: pointer - 5000, err: ErrUnexpected},
		{name: "m behind the thread pointer", id: 7, g: 0x10800, m: pointer + 8, err: ErrUnexpected},
		{name: "a bad pointer to gsignal", id: 7, g: 0x10800, m: pointer - 136, stack: 1 << 50, err: ErrUnexpected},
	} {
		m := &made{0x10000, make([]byte, 0x1000)}
		m.put(pointer+G, c.g)
		m.put(pointer+ProcID, c.id, c.stack)
		m.put(0x10800+gM, c.m)
		m.put(0x10A00, 0x20000, 0x28000)
		th, known, err := ReadThread(m, pointer)
		if known != c.known || !errors.Is(err, c.err) || known && (th.ID != 7 || th.G != c.g || (th.Signals.Hi != 0) != (c.stack != 0)) {
			t.Errorf("%s: %+v, %v, %v", c.name, th, known, err)
		}
	}
	if _, known, err := ReadThread(&made{}, 0); known || err != nil {
		t.Errorf("without a thread pointer: %v, %v", known, err)
	}
	if _, known, err := ReadThread(&made{}, 8); known || err == nil {
		t.Errorf("a thread pointer that leads nowhere: %v, %v", known, err)
	}
}

func FuzzGoroutines(f *testing.F) {
	_, m := threeGoroutines()
	f.Add(m.data)
	f.Fuzz(func(t *testing.T, data []byte) {
		gs, _ := threeGoroutines()
		gs.mem = &made{0x10000, data}
		_ = gs.Preempted([]Thread{{ID: 7, G: madeG}}, func(g, pc uint64) {})
		if l, ok := sliceOf(append(slices.Clone(data[:min(24, len(data))]), make([]byte, 24)...)); ok {
			gs.isList(l)
		}
		_, _, _ = ReadThread(gs.mem, 0x10400)
	})
}
