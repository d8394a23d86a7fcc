package ring

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
)

// anyNamed says whether any thread has named itself: most never do.
func (m *Memory) anyNamed() bool { return atomic.LoadUint32(m.u32(HdrNamed)) != 0 }

// OwnName is a name that a thread has given itself, where a stub has seen that.
type OwnName struct {
	Name   string
	number uint8 // it changes with each; 0 if there is no name, or if the thread is just about to write it
}

// IsThere says whether there is one.
func (o OwnName) IsThere() bool { return o.number != 0 }

// OwnName returns the name that a thread has given itself last. Of two that aren't equal the later call's is the newer name.
func (m *Memory) OwnName(tid int) (none OwnName) {
	if tid <= 0 || tid >= MaxTID || !m.anyNamed() {
		return none
	}
	at := NamesOff + uint64(tid)<<NameShift
	var b [NameSize]byte
	if m.peek(b[:], at); b[NameSize-1] == 0 {
		return none
	}
	// The number is taken away before the name changes, and put behind it afterwards.
	high := atomic.LoadUint64(m.u64(at + 8))
	low := atomic.LoadUint64(m.u64(at))
	if atomic.LoadUint64(m.u64(at+8)) != high {
		return none
	}
	binary.LittleEndian.PutUint64(b[:], low)
	binary.LittleEndian.PutUint64(b[8:], high)
	name, _, _ := bytes.Cut(b[:NameSize-1], []byte{0})
	return OwnName{string(name), b[NameSize-1]}
}
