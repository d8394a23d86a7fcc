package ring

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/callreel/callreel/reel"
)

// spoil writes v into a field of the shared memory.
func (m *Memory) spoil(off, v uint64) { binary.LittleEndian.PutUint64(m.mem[off:], v) }

// drainHostile drains a spoiled memory; that it comes back at all is what counts.
func drainHostile(t testing.TB, d *Drainer) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		for range 3 {
			if _, err := d.Round(); err != nil {
				done <- err
				return
			}
		}
		for tid := range d.Threads {
			if tid%2 == 0 {
				if err := d.End(tid); err != nil {
					done <- err
					return
				}
				break
			}
		}
		done <- d.Finish()
	}()
	select {
	case err := <-done:
		if err != nil && !errors.Is(err, errHostile) {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("draining doesn't end")
	}
}

var errHostile = errors.New("too much")

func TestNoValueInTheMemoryIsBelieved(t *testing.T) {
	const tid = 42
	slot := SlotsOff + uint64(tid)*SlotSize
	chain := func(m *Memory, links ...uint32) { // 1-based
		for i, from := range links[:len(links)-1] {
			binary.LittleEndian.PutUint32(m.mem[m.chunk(from-1)+ChunkNext:], links[i+1])
		}
	}
	for name, spoil := range map[string]func(m *Memory){
		"registered many":       func(m *Memory) { m.spoil(HdrRegistered, 1<<63) },
		"registered fewer":      func(m *Memory) { m.spoil(HdrRegistered, 0) },
		"thread ID too high":    func(m *Memory) { m.spoil(HdrRegistered, 2); m.spoil(RegistryOff+RegistryEntry, 1<<32-1) },
		"first chunk too high":  func(m *Memory) { m.spoil(slot+SlotFirst, 1<<32-1) },
		"first chunk a half":    func(m *Memory) { m.spoil(slot+SlotFirst, 1<<31) },
		"next chunk too high":   func(m *Memory) { chain(m, 3, 1<<31) },
		"chunk leads to itself": func(m *Memory) { chain(m, 3, 3) },
		"chunks in a circle":    func(m *Memory) { chain(m, 3, 4, 5, 3) },
		"chunks of the pool":    func(m *Memory) { chain(m, 3, 8, 7, 6, 5, 4) },
		"drops without number":  func(m *Memory) { m.spoil(slot+SlotDropped, 1<<62) },
		"claim word of nothing": func(m *Memory) { m.spoil(slot+SlotClaim, 1<<63) },
		"claim word of all":     func(m *Memory) { m.spoil(slot+SlotClaim, 1<<64-1) },
		"pool leads to itself":  func(m *Memory) { m.spoil(HdrPool, 2); m.spoil(NextOff+4, 2) },
		"pool head too high":    func(m *Memory) { m.spoil(HdrPool, 1<<64-1) },
		"magic and sizes": func(m *Memory) {
			for off := uint64(0); off < HdrRegistered; off += 8 {
				m.spoil(off, 1<<64-1)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory(t, 8)
			d, _ := collect(m)
			p := &producer{m, tid}
			p.register("x")
			for range 100 {
				p.event(reel.Entry(1, 1, 1))
			}
			if err := d.meet(); err != nil {
				t.Fatal(err)
			}
			spoil(m)
			drainHostile(t, d)
		})
	}
}

// FuzzDrain changes words all over the memory, between rounds too.
func FuzzDrain(f *testing.F) {
	f.Add(uint64(1), []byte{1, 2, 3})
	f.Add(uint64(2), []byte{0xFF, 0, 0x80, 7, 9, 200})
	f.Add(uint64(4), []byte{1, 2, 7, 9, 4, 15, 23, 5, 1, 31, 4})
	f.Fuzz(func(t *testing.T, seed uint64, script []byte) {
		const chunks = 8
		m := memoryOf(t, Setup{Chunks: chunks, Divide: seed/3%2 == 1})
		events := 0
		d := NewDrainer(m, func(tid, _ int, name string) (Sink, error) { return limited{&events}, nil })
		d.Min = seed % 3
		d.TakesBack = d.Min != 0
		r := rand.New(rand.NewPCG(seed, 1))
		interesting := []uint64{0, 1, 2, 7, 8, 9, 1 << 31, 1<<32 - 1, 1 << 63, 1<<64 - 1, ClaimEmpty, Claim}
		for i, b := range script[:min(len(script), 64)] {
			p := &producer{m, 1 + int(b%3)}
			switch b % 8 {
			case 0:
				p.register("x")
			case 1, 2:
				for range 1 + int(b)*40 {
					if at, ok := p.tryClaim(); ok {
						put(at, reel.Entry(1, 1, uint32(i)+1))
					}
				}
			case 3:
				p.tryClaim()
			case 4:
				if _, err := d.Round(); err != nil {
					return
				}
			case 5:
				if err := d.End(p.tid); err != nil {
					return
				}
			case 6:
				if r.IntN(2) == 0 {
					off := d.Off
					if r.IntN(2) == 0 {
						off = func(tid int) error { return d.On(tid, limited{&events}) }
					}
					if err := off(p.tid); err != nil {
						return
					}
				}
				m.spoil(TakingOff+8*uint64(p.tid), testBase+m.chunk(uint32(r.IntN(m.chunks)))+ChunkHeader+uint64(r.IntN(200)-50)*EventSize)
			default:
				at := []uint64{HdrMagic, HdrSmallPool, NextOff, RegistryOff, p.slot(0), p.slot(0), ChunksOff, ChunksOff + ChunkSize}[r.IntN(8)] + 4*r.Uint64N(16)
				if r.IntN(3) == 0 {
					at = m.chunk(uint32(r.IntN(m.chunks))) + 4*r.Uint64N(SmallSize/4-1)
				}
				v := interesting[r.IntN(len(interesting))]
				if r.IntN(4) == 0 {
					v = r.Uint64()
				}
				m.spoil(at, v)
			}
		}
		drainHostile(t, d)
	})
}

// tryClaim is claim in a memory that may be spoiled: what leads out of it is left alone.
func (p *producer) tryClaim() (at *reel.Event, ok bool) {
	defer func() {
		if recover() != nil {
			at, ok = nil, false
		}
	}()
	at, err := p.claim()
	return at, err == nil
}

// limited is a sink for hostile producers.
type limited struct{ events *int }

func (l limited) Append(events []reel.Event) error {
	if *l.events += len(events); *l.events > 1<<20 {
		return errHostile
	}
	return nil
}

func (l limited) Dropped(entries, exits, tick uint64) error { return nil }
