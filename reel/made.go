package reel

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Made says how many calls of each function there were, by function ID, in a recording of one in every so many. It may be called
// first with none, so that it is known how a recording is made whose recorder is killed, and again, for other functions or further calls.
func (w *Writer) Made(every uint32, calls map[uint32]uint64) error {
	b := appendUvarint(make([]byte, frameSize), uint64(every))
	before := uint32(0)
	for _, id := range slices.Sorted(maps.Keys(calls)) {
		b = appendUvarint(b, uint64(id-before))
		b = appendUvarint(b, calls[id])
		before = id
	}
	w.tableMu.Lock()
	defer w.tableMu.Unlock()
	return w.put(frame{kind: KindMade, count: uint32(len(calls))}, b)
}

// Made returns how many calls of a function were made, of which one in Every was recorded; ok is false if that isn't known: all were to
// be recorded, or the recorder was killed before it told.
func (f *File) Made(function uint32) (calls uint64, ok bool) {
	calls, ok = f.made[function]
	return calls, ok
}

// Every says that one in so many calls of each function was recorded; it is 0 where all were to be.
func (f *File) Every() uint32 { return f.every }

// loadMade reads the chunk; of a damaged one what precedes the damage. A function takes two bytes at least.
func (f *File) loadMade(payload []byte, count uint32) error {
	p := fields{b: payload}
	every := p.uvarint()
	if p.err == nil && (every < 2 || every > math.MaxUint32) {
		return fmt.Errorf("one call in %d was recorded", every)
	}
	f.every = uint32(every)
	if f.made == nil {
		f.made = map[uint32]uint64{}
	}
	id := uint64(0)
	for range count {
		step, calls := p.uvarint(), p.uvarint()
		if p.err != nil {
			break
		}
		if step == 0 || step > MaxID-id {
			return fmt.Errorf("the calls of function %d are counted behind those of %d", id+step, id)
		}
		id += step
		f.made[uint32(id)] += calls
	}
	return p.err
}
