package reel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// encodeAll returns the payloads that events take, chunk by chunk.
func encodeAll(e *encoder, events []Event, mode ClockMode, each func(payload []byte, count int)) {
	for len(events) > 0 {
		e.reset()
		n := e.append(events, mode)
		events = events[n:]
		each(e.finish(), int(e.count))
	}
}

func roundTrip(t *testing.T, events []Event, mode ClockMode) (size int) {
	t.Helper()
	var got []Event
	var d decoder
	encodeAll(new(encoder), events, mode, func(payload []byte, count int) {
		var err error
		if got, err = d.decode(got, payload, count, mode); err != nil {
			t.Fatalf("decode: %v", err)
		}
		size += len(payload)
	})
	if len(got) != len(events) {
		t.Fatalf("decoded %d events, encoded %d", len(got), len(events))
	}
	for i := range got {
		if got[i] != events[i] {
			t.Fatalf("mode %v: event %d: decoded %+v, encoded %+v", mode, i, got[i], events[i])
		}
	}
	return size
}

func withoutClock(events []Event, mode ClockMode) []Event {
	out := slices.Clone(events)
	for i := range out {
		if mode == ClockNone || mode == ClockExit && !out[i].IsExit() {
			out[i].Time = 0
		}
	}
	return out
}

func TestCodecRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	program := newProgram(3, 300).run(200_000)
	recursion := make([]Event, 0, 20_000)
	for i := range 10_000 {
		recursion = append(recursion, Entry(uint64(1000+i), uint32(1<<30-i*48), 9))
	}
	for i := range 10_000 {
		recursion = append(recursion, Exit(uint64(20_000+i), uint32(1<<30-(9999-i)*48), 9))
	}
	tests := []struct {
		name   string
		events []Event
		most   float64 // bytes an event, with a clock
	}{
		{"program", program, 2.0},
		{"deep recursion", recursion, 4},
		{"no structure", randomEvents(rng, 50_000), 27},
		{"one event", program[:1], 40},
		{"time runs backward", []Event{Entry(100, 64, 1), Exit(40, 64, 1), Entry(90, 64, 1), Exit(1, 64, 1)}, 12},
		{"time steps by 2^62", []Event{Entry(100, 64, 1), Exit(140, 64, 1), Entry(180, 64, 1), Exit(180|1<<62, 64, 1), Entry(260, 64, 1), Exit(260|1<<63, 64, 1), Entry(300, 64, 1)}, 27},
		{"extremes", []Event{{}, {^uint64(0), ^uint32(0), ^uint32(0)}, {}, {1 << 63, 1 << 31, 1 << 31}, {1<<63 - 1, 0, 1}, {0, 0, 1}, {0, 0, 1}}, 40},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, mode := range []ClockMode{ClockFull, ClockExit, ClockNone} {
				// Events that carry a time where none is expected must survive too.
				roundTrip(t, test.events, mode)
				size := roundTrip(t, withoutClock(test.events, mode), mode)
				each := float64(size) / float64(len(test.events))
				t.Logf("clock %v: %.3f bytes/event", mode, each)
				if each > test.most {
					t.Errorf("clock %v: %.2f bytes an event, want at most %v", mode, each, test.most)
				}
			}
		})
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add(uint64(1), uint16(50), byte(0), []byte{1, 2, 3})
	f.Add(uint64(9), uint16(1000), byte(1), []byte{0, 0, 0, 255, 255, 255, 255, 3, 9, 9, 9, 1, 1, 200, 0, 0, 1})
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, mode byte, raw []byte) {
		events := newProgram(seed, 20).run(int(n % 2000))
		// Four bytes of input change or insert one event.
		for ; len(raw) >= 4 && len(events) > 0; raw = raw[4:] {
			i := (int(raw[0])<<8 | int(raw[1])) % len(events)
			switch raw[2] % 4 {
			case 0:
				events[i].Time ^= 1 << (raw[3] % 64)
			case 1:
				events[i].SP ^= 1 << (raw[3] % 32)
			case 2:
				events[i].Word ^= 1 << (raw[3] % 32)
			case 3:
				events = slices.Delete(events, i, i+1)
			}
		}
		m := ClockMode(mode % 3)
		roundTrip(t, events, m)
		roundTrip(t, withoutClock(events, m), m)
	})
}
