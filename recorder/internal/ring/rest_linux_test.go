package ring

import (
	"encoding/binary"
	"errors"
	"testing"
)

var errOutside = errors.New("outside")

// restOf is ring memory of two chunks that begins with a header, and has the chunks' bytes.
func restOf(head, chunks []byte) func(buf []byte, off uint64) error {
	return func(buf []byte, off uint64) error {
		clear(buf)
		switch {
		case off < ChunksOff:
			if off < uint64(len(head)) {
				copy(buf, head[off:])
			}
			return nil
		case off-ChunksOff+uint64(len(buf)) > 2*ChunkSize:
			return errOutside
		case off-ChunksOff < uint64(len(chunks)):
			copy(buf, chunks[off-ChunksOff:])
		}
		return nil
	}
}

// goodRest has one full chunk of a thread, of so many events.
func goodRest(tid uint32, events int) (head, chunks []byte) {
	le := binary.LittleEndian
	head, chunks = make([]byte, HdrArmed), make([]byte, ChunkHeader+events*EventSize)
	le.PutUint64(head, Magic)
	le.PutUint32(head[HdrVersion:], Version)
	le.PutUint64(head[HdrChunks:], 2)
	le.PutUint64(head[HdrPool:], 1)
	le.PutUint32(chunks[ChunkTID:], tid)
	le.PutUint32(chunks[ChunkState:], ChunkFull)
	le.PutUint64(chunks[ChunkFrom:], 10)
	le.PutUint64(chunks[ChunkTo:], 100)
	for i := range events {
		e := chunks[ChunkHeader+i*EventSize:]
		le.PutUint64(e[EventTime:], uint64(10+i))
		le.PutUint32(e[EventWord:], 2)
	}
	return head, chunks
}

func TestWhatRingsHoldIsReadInPieces(t *testing.T) {
	const size = ChunksOff + 2*ChunkSize
	head, chunks := goodRest(7, 5)
	r, err := ReadRest(size, restOf(head, chunks))
	if err != nil {
		t.Fatal(err)
	}
	if ids := r.Threads(); len(ids) != 1 || ids[0] != 7 || r.Reaches(0) != 10 || r.Reaches(20) != 20 || r.Frozen != 0 {
		t.Errorf("threads %v, reaches %d, frozen %d", ids, r.Reaches(0), r.Frozen)
	}
	for to, want := range map[uint64]int{12: 3, 1000: 5} {
		if runs, err := r.Runs(7, to); err != nil || len(runs) != 1 || len(runs[0].Events) != want {
			t.Errorf("up to %d: %+v, %v", to, runs, err)
		}
	}
	// Behind a call that fired chunks were still taken, the last at the moment 10.
	frozen := append([]byte(nil), head...)
	for pool, want := range map[byte]uint64{0: 10, PoolGrace: 0, PoolOpen: 0} {
		frozen[HdrPool], frozen[HdrFrozenAt] = pool, 5
		if r, err := ReadRest(size, restOf(frozen, chunks)); err != nil || r.Frozen != want {
			t.Errorf("with a pool of %d they count as frozen since %d, want %d, %v", pool, r.Frozen, want, err)
		}
	}
	for name, change := range map[string]func(head []byte){
		"more chunks than there is memory": func(h []byte) { h[HdrChunks] = 3 },
		"small chunks":                     func(h []byte) { h[HdrSmall] = 1 },
		"none":                             func(h []byte) { h[HdrChunks] = 0 },
		"another version":                  func(h []byte) { h[HdrVersion]++ },
	} {
		bad := append([]byte(nil), head...)
		change(bad)
		if _, err := ReadRest(size, restOf(bad, chunks)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The inputs are short, of the header only what is read: of what finds something new the fuzzer tries each stretch that could be left out.
func FuzzReadRest(f *testing.F) {
	const mostBytes = ChunkHeader + 8*EventSize // of each chunk
	_, chunk := goodRest(7, 3)
	f.Add(uint32(Version), uint64(2), uint64(1), uint32(0), uint64(ChunksOff+2*ChunkSize), chunk, chunk[:ChunkHeader+EventSize])
	f.Fuzz(func(t *testing.T, version uint32, chunks, pool uint64, small uint32, size uint64, first, second []byte) {
		if len(first) > mostBytes || len(second) > mostBytes {
			return
		}
		le := binary.LittleEndian
		head := make([]byte, HdrArmed)
		le.PutUint64(head, Magic)
		le.PutUint32(head[HdrVersion:], version)
		le.PutUint64(head[HdrChunks:], chunks)
		le.PutUint64(head[HdrPool:], pool)
		le.PutUint32(head[HdrSmall:], small)
		le.PutUint64(head[HdrFrozenAt:], size)
		r, err := ReadRest(size, func(buf []byte, off uint64) error {
			if off >= ChunksOff+ChunkSize {
				return restOf(head, second)(buf, off-ChunkSize)
			}
			return restOf(head, first)(buf, off)
		})
		if err != nil {
			return
		}
		for _, tid := range r.Threads() {
			runs, err := r.Runs(tid, 1000)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range runs {
				if h.TID != tid || len(h.Events) > ChunkEvents {
					t.Errorf("%+v", h)
				}
				for _, p := range h.Payloads {
					if p.Event >= len(h.Events) {
						t.Errorf("%d events, a payload of the %dth", len(h.Events), p.Event)
					}
				}
			}
		}
	})
}
