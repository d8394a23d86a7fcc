package reel

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Off is a time in which a function's calls were not recorded for what that costs: it was switched off, or its sites were taken out.
type Off struct {
	Function uint32
	// From and To are in ticks; To is 0 for a time whose end nobody has told yet. File.Offs knows none of those: there it is the end of the
	// recording.
	From, To uint64
	// Estimated is how many calls the function had then as far as samples tell, 0 if nobody has looked.
	Estimated uint64
}

// Within is how many ticks of it lie between two.
func (o *Off) Within(from, to uint64) uint64 {
	from, to = max(o.From, from), min(o.To, to)
	return to - min(from, to)
}

// During says whether a part of it lies between two ticks. A time that is a single tick has a part, too.
func (o *Off) During(from, to uint64) bool { return o.From <= to && o.To >= from }

const (
	// maxOffs bounds how many times are kept of a file, at 32 bytes each; what comes behind them is told as damage.
	maxOffs = 1 << 20
	// offsInGroup is how many functions a group has at most, offsInChunk how many times a chunk.
	offsInGroup = 1 << 14
	offsInChunk = 1 << 16
)

// Off tells of times in which functions were off, in any order. A time may be told again, by its function and From, when more is known of it:
// its end, or an estimate. What is told last counts. The list stays as it is.
func (w *Writer) Off(list []Off) error {
	list = slices.Clone(list)
	for i := range list {
		if o := &list[i]; o.Function == 0 || o.Function > MaxID || o.To != 0 && o.To < o.From {
			return fmt.Errorf("reel: %s: function %d can't be off from tick %d to %d", w.name, o.Function, o.From, o.To)
		}
	}
	slices.SortStableFunc(list, func(a, b Off) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Function, b.Function))
	})
	for len(list) > 0 {
		n := min(len(list), offsInChunk)
		b, count, last := appendOffs(make([]byte, frameSize, frameSize+n+64), list[:n])
		if err := w.put(frame{kind: KindOffs, count: count, first: list[0].From, last: last}, b); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// appendOffs appends times, which are sorted by From, To and function, in groups that have the same From and To:
//
//	From as the difference to the group before, To - From + 1 or 0 if it isn't told, how many functions, twice, and 1 if there are estimates;
//	of each function the difference of its ID to the one before; the estimates
//
// It returns how many those are, and the last tick. Functions that go off together have IDs near to each other: a byte each, mostly.
func appendOffs(b []byte, list []Off) (_ []byte, count uint32, last uint64) {
	before := uint64(0)
	for len(list) > 0 {
		head := list[0]
		n := 1
		for n < len(list) && n < offsInGroup && list[n].From == head.From && list[n].To == head.To {
			n++
		}
		group := slices.CompactFunc(slices.Clone(list[:n]), func(a, b Off) bool { return a.Function == b.Function })
		for i, j := 0, 0; i < len(group); i++ { // of what is there twice the last counts
			for ; j < n && list[j].Function <= group[i].Function; j++ {
				group[i].Estimated = list[j].Estimated
			}
		}
		list = list[n:]
		estimated := uint64(0)
		if slices.ContainsFunc(group, func(o Off) bool { return o.Estimated > 0 }) {
			estimated = 1
		}
		length := uint64(0)
		if head.To != 0 {
			length = head.To - head.From + 1
		}
		for _, v := range [...]uint64{head.From - before, length, uint64(len(group))<<1 | estimated} {
			b = appendUvarint(b, v)
		}
		before = head.From
		id := uint32(0)
		for i := range group {
			b = appendUvarint(b, uint64(group[i].Function-id))
			id = group[i].Function
		}
		for i := range group {
			if estimated != 0 {
				b = appendUvarint(b, group[i].Estimated)
			}
		}
		count += uint32(len(group))
		last = max(last, head.From, head.To)
	}
	return b, count, last
}

// loadOffs reads a chunk of them; of a damaged one what precedes the damage. Each takes a byte at least.
func (f *File) loadOffs(payload []byte, count uint32) error {
	d := fields{b: payload}
	from := uint64(0)
	for left := uint64(count); left > 0; {
		step, length, n := d.uvarint(), d.uvarint(), d.uvarint()
		estimated := n&1 != 0
		n >>= 1
		switch {
		case d.err != nil:
			return d.err
		case step > math.MaxUint64-from || length > 0 && length-1 > math.MaxUint64-(from+step):
			return errors.New("a time in which functions were off is out of range")
		case n == 0 || n > left || n > uint64(len(d.b)) || n > offsInGroup:
			return fmt.Errorf("%d functions were off together, of %d", n, left)
		}
		from += step
		o := Off{From: from}
		if length > 0 {
			o.To = from + length - 1
		}
		begin := len(f.offs)
		if begin+int(n) > 2*maxOffs {
			if f.offs = latestOffs(f.offs); len(f.offs) > maxOffs {
				return fmt.Errorf("functions were off more than %d times", maxOffs)
			}
			begin = len(f.offs)
		}
		id := uint64(0)
		for range n {
			step := d.uvarint()
			if d.err != nil || step == 0 || step > MaxID-id {
				f.offs = f.offs[:begin]
				return errors.Join(d.err, fmt.Errorf("of function %d and %d more", id, step))
			}
			id += step
			o.Function = uint32(id)
			f.offs = append(f.offs, o)
		}
		for i := begin; estimated && i < len(f.offs); i++ {
			if f.offs[i].Estimated = d.uvarint(); d.err != nil {
				return d.err
			}
		}
		f.lastOff = max(f.lastOff, o.From, o.To)
		left -= n
	}
	return d.err
}

// latestOffs sorts times by function and From, and keeps of those that were told several times what was told last.
func latestOffs(list []Off) []Off {
	slices.SortStableFunc(list, func(a, b Off) int {
		return cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(a.From, b.From))
	})
	kept := list[:0]
	for i := range list {
		if n := len(kept); n > 0 && kept[n-1].Function == list[i].Function && kept[n-1].From == list[i].From {
			kept[n-1] = list[i]
			continue
		}
		kept = append(kept, list[i])
	}
	return kept
}

// joinOffs sorts out what is to be known of them: functions that the reel has, in order, and of each the times in order, none of which touch.
// What was joined has its estimates added up.
func (f *File) joinOffs() {
	f.offs = latestOffs(f.offs)
	if len(f.offs) > maxOffs {
		f.damage.add(Damage{Offset: int64(len(f.data)), What: fmt.Sprintf("functions were off %d times, of which %d are kept", len(f.offs), maxOffs)})
		f.offs = f.offs[:maxOffs]
	}
	kept := f.offs[:0]
	for _, o := range f.offs {
		if o.To == 0 {
			o.To = max(f.lastTick, o.From)
		}
		if n := len(kept); n > 0 && kept[n-1].Function == o.Function && kept[n-1].To >= o.From {
			last := &kept[n-1]
			last.To = max(last.To, o.To)
			last.Estimated += min(o.Estimated, math.MaxUint64-last.Estimated)
			continue
		}
		if f.functions.index(o.Function) >= 0 {
			kept = append(kept, o)
		}
	}
	f.offs = slices.Clip(kept)
}

// Offs are the times in which functions were off, by function and then in order; those of one function don't touch. Times that had no end when
// the file was opened end with the recording, and go on if that does. The slice is shared; the caller must not change it.
func (f *File) Offs() []Off { return f.offs }

// OffsOf are those of one function.
func (f *File) OffsOf(function uint32) []Off {
	from, _ := slices.BinarySearchFunc(f.offs, function, func(o Off, id uint32) int { return cmp.Compare(o.Function, id) })
	to := from
	for to < len(f.offs) && f.offs[to].Function == function {
		to++
	}
	return f.offs[from:to]
}

// OffSum says for how long a function was off between two ticks, how often, and how many calls it had then as far as samples tell; an estimate is
// taken in proportion of a time that is only in part between them.
type OffSum struct {
	Function  uint32
	Times     int
	Ticks     uint64
	Estimated uint64
}

// SumOffs sums up times of one function, as OffsOf returns them, between two ticks.
func SumOffs(list []Off, from, to uint64) (s OffSum) {
	for i := range list {
		o := &list[i]
		if !o.During(from, to) {
			continue
		}
		s.Function = o.Function
		s.Times++
		ticks := o.Within(from, to)
		s.Ticks += ticks
		estimated := o.Estimated
		if whole := o.To - o.From; whole > 0 && ticks < whole {
			estimated = uint64(float64(estimated) * (float64(ticks) / float64(whole)))
		}
		s.Estimated += min(estimated, math.MaxUint64-s.Estimated)
	}
	return s
}

// OffIn sums up the times of all functions that were off between two ticks, in order of their IDs.
func (f *File) OffIn(from, to uint64) (sums []OffSum) {
	for rest := f.offs; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Function == rest[0].Function {
			n++
		}
		if s := SumOffs(rest[:n], from, to); s.Times > 0 {
			sums = append(sums, s)
		}
		rest = rest[n:]
	}
	return sums
}
