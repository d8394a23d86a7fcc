package viewer

import "github.com/callreel/callreel/reel"

// FunctionOff is there of a function that was off for some time: its calls were not recorded then, for what that costs. The keys are promised.
type FunctionOff struct {
	OffNS uint64 `json:"off_ns"`
	// OffShare is the share of the recording, or of the range, that that is.
	OffShare float64 `json:"off_share"`
	// EstimatedCalls is how many calls it had then as far as samples tell; not there if nobody has looked.
	EstimatedCalls uint64 `json:"estimated_calls,omitempty"`
}

// OffOf says for how long a function was off between two ticks; nil if it wasn't.
func OffOf(f *reel.File, function uint32, from, to uint64) *FunctionOff {
	s := reel.SumOffs(f.OffsOf(function), from, to)
	if s.Times == 0 {
		return nil
	}
	o := offOf(f, s, from, to)
	return &o
}

func offOf(f *reel.File, s reel.OffSum, from, to uint64) FunctionOff {
	share := 1.0
	if to > from {
		share = float64(s.Ticks) / float64(to-from)
	}
	return FunctionOff{f.Clock().Nanoseconds(s.Ticks), min(share, 1), s.Estimated}
}

// Recorded are the ticks that shares of a recording are of: of a dump its window.
func Recorded(f *reel.File) (from, to uint64) {
	from, to = f.FirstTick(), f.LastTick()
	if d, ok := f.Dump(); ok {
		from, to = d.From, d.To
	}
	return from, max(from, to)
}
