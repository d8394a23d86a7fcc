package ring

import (
	"encoding/binary"
	"strings"
	"sync/atomic"
	"testing"
)

// name gives the thread a name, in the steps of the code in the target.
func (p *producer) name(name string) {
	at := NamesOff + uint64(p.tid)<<NameShift
	number := p.m.mem[at+15]&127 + 1 | 128
	var b [NameSize]byte
	copy(b[:15], name)
	high := binary.LittleEndian.Uint64(b[8:])
	atomic.StoreUint32(p.m.u32(at+12), 0)
	atomic.StoreUint64(p.m.u64(at), binary.LittleEndian.Uint64(b[:]))
	atomic.StoreUint64(p.m.u64(at+8), high)
	atomic.StoreUint64(p.m.u64(at+8), high|uint64(number)<<56)
	atomic.StoreUint32(p.m.u32(HdrNamed), 1)
}

func TestTheNameThatAThreadHasGivenItselfIsKnown(t *testing.T) {
	m := newMemory(t, 8)
	p := &producer{m, 300}
	if n := m.OwnName(p.tid); n.IsThere() || n != (OwnName{}) {
		t.Errorf("%+v before there is one", n)
	}
	last := OwnName{}
	for i, name := range []string{"a", "", "b", "fifteen letters", "b", "b"} {
		p.name(name)
		n := m.OwnName(p.tid)
		if !n.IsThere() || n.Name != name {
			t.Errorf("%d: %+v, want %q", i, n, name)
		}
		if n == last {
			t.Errorf("%d: %+v is told from no name before", i, n)
		}
		last = n
	}
	if n := m.OwnName(p.tid + 1); n.IsThere() {
		t.Errorf("another thread is called %q", n.Name)
	}
	atomic.StoreUint32(m.u32(NamesOff+uint64(p.tid)<<NameShift+12), 0)
	if n := m.OwnName(p.tid); n.IsThere() {
		t.Errorf("%+v while it is being written", n)
	}
	p.name("c")
	m.forgetThread(p.tid)
	if n := m.OwnName(p.tid); n != (OwnName{}) {
		t.Errorf("%+v of a thread that was forgotten", n)
	}
}

// A name that changes all the time is read whole, or not at all.
func TestNamesAreReadWhole(t *testing.T) {
	m := newMemory(t, 8)
	p := &producer{m, 300}
	p.name(strings.Repeat("z", 15))
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; !stop.Load(); i++ {
			p.name(strings.Repeat(string(rune('a'+i%26)), 15))
		}
	}()
	there := 0
	for range 200_000 {
		n := m.OwnName(p.tid)
		if !n.IsThere() {
			continue
		}
		there++
		if len(n.Name) != 15 || strings.Trim(n.Name, n.Name[:1]) != "" {
			t.Errorf("it is called %q", n.Name)
			break
		}
	}
	stop.Store(true)
	<-done
	if there == 0 {
		t.Error("it never has a name")
	}
}

// Whatever the target writes, a name is one that a thread can have, and looking for names takes no memory.
func TestNamesAreNotBelieved(t *testing.T) {
	m := newMemory(t, 8)
	m.spoil(HdrNamed, 1<<64-1)
	for _, tid := range []int{-1, 0, MaxTID, MaxTID + 1, 1 << 40} {
		if n := m.OwnName(tid); n != (OwnName{}) {
			t.Errorf("thread %d: %+v", tid, n)
		}
	}
	before := m.resident(t)
	for tid := 1; tid < MaxTID; tid += 4096 >> NameShift * 61 {
		if n := m.OwnName(tid); n != (OwnName{}) {
			t.Errorf("thread %d: %+v", tid, n)
		}
		m.forgetThread(tid)
	}
	if grown := m.resident(t) - before; grown > 0 {
		t.Errorf("%d bytes of ring memory for names that there are not", grown)
	}
	at := uint64(NamesOff + 7<<NameShift)
	for _, v := range []uint64{1<<64 - 1, 0x0101010101010101, 1 << 56} {
		m.spoil(at, v)
		m.spoil(at+8, v)
		if n := m.OwnName(7); len(n.Name) > 15 || strings.Contains(n.Name, "\x00") {
			t.Errorf("%#x: %q", v, n.Name)
		}
	}
}
