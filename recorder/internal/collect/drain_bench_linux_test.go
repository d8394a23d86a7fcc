package collect

import (
	"encoding/binary"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/recorder/internal/probes"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/ring/ringtest"
	"github.com/callreel/callreel/recorder/internal/tables"
	"github.com/callreel/callreel/reel"
)

// benchProgram makes the calls of a made-up program: functions with call sites of their own, some conditional, some in
// loops, so that its run is mostly regular and never quite, as real ones are.
type benchProgram struct {
	rng    *rand.Rand
	funcs  [][]benchSite
	now    uint64
	events []reel.Event
}

type benchSite struct {
	callee, percent, loop int
	cost                  uint64
}

const benchFunctions = 500

func newBenchProgram() *benchProgram {
	p := &benchProgram{rng: rand.New(rand.NewPCG(1, 2)), now: 1 << 50}
	zipf := rand.NewZipf(p.rng, 1.2, 4, benchFunctions-1) // few functions are called often, many seldom
	for f := range benchFunctions {
		var sites []benchSite
		for range p.rng.IntN(4) * min(1, f%4) {
			s := benchSite{callee: benchFunctions - 1 - int(zipf.Uint64()), percent: 100, loop: 1, cost: uint64(20 + p.rng.IntN(150))}
			switch p.rng.IntN(6) {
			case 0:
				s.percent = 10 + p.rng.IntN(80)
			case 1:
				s.loop = 1 + p.rng.IntN(8)
			}
			sites = append(sites, s)
		}
		p.funcs = append(p.funcs, sites)
	}
	return p
}

func (p *benchProgram) run(n int) []reel.Event {
	p.events = make([]reel.Event, 0, n+64)
	for len(p.events) < n {
		p.call(p.rng.IntN(benchFunctions), 0x7FFC_1230, 0, n)
	}
	return p.events[:n]
}

func (p *benchProgram) call(f int, sp uint32, depth, n int) {
	p.now += 25 + 24*p.rng.Uint64N(3)
	p.events = append(p.events, reel.Entry(p.now, sp, uint32(f+1)))
	for _, s := range p.funcs[f] {
		if depth >= 30 || len(p.events) >= n || p.rng.IntN(100) >= s.percent {
			continue
		}
		for range 1 + p.rng.IntN(s.loop) {
			p.now += s.cost
			p.call(s.callee, sp-uint32(24+f%12*16), depth+1, n)
		}
	}
	p.now += 25 + 24*p.rng.Uint64N(3)
	p.events = append(p.events, reel.Exit(p.now, sp, uint32(f+1)))
}

// benchThread fills rings as a thread of the target does, chunk by chunk.
type benchThread struct {
	mem   []byte
	tid   int
	chunk uint32 // index+1 of the last one
}

func (th *benchThread) register() {
	n := binary.LittleEndian.Uint64(th.mem[ring.HdrRegistered:])
	binary.LittleEndian.PutUint64(th.mem[ring.HdrRegistered:], n+1)
	binary.LittleEndian.PutUint32(th.mem[ring.RegistryOff+n*ring.RegistryEntry+ring.RegTID:], uint32(th.tid))
}

// fill takes one chunk of the pool and writes a chunk's worth of events.
func (th *benchThread) fill(b *testing.B, events []reel.Event) {
	le := binary.LittleEndian
	head := le.Uint64(th.mem[ring.HdrPool:])
	next := uint32(head)
	if next == 0 {
		b.Fatal("the pool is empty")
	}
	below := le.Uint32(th.mem[ring.NextOff+4*(next-1):])
	le.PutUint64(th.mem[ring.HdrPool:], (head>>32+1)<<32|uint64(below))
	at := ring.ChunksOff + int(next-1)*ring.ChunkSize
	copy(unsafe.Slice((*reel.Event)(unsafe.Pointer(&th.mem[at+ring.ChunkHeader])), ring.ChunkEvents), events)
	link := ring.SlotsOff + th.tid*ring.SlotSize + ring.SlotFirst
	if th.chunk != 0 {
		link = ring.ChunksOff + int(th.chunk-1)*ring.ChunkSize + ring.ChunkNext
	}
	le.PutUint32(th.mem[link:], next)
	th.chunk = next
}

// cpuTime is what the calling thread has used of its core, in seconds; the machine may be shared.
func cpuTime(b *testing.B) float64 {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &ru); err != nil {
		b.Fatal(err)
	}
	return float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e9
}

// BenchmarkDrain is the recorder's work for each event: out of the rings, encoded, checked by sums and into a file on
// disk, on one core. What the target does is not counted. events/s is by the core's time, events/wall-s by the clock.
func BenchmarkDrain(b *testing.B) {
	const chunks, threads, batch = 768, 4, 128 // 32 MiB of events at a time, 2 M
	memory, mem := ringtest.Memory(b, ring.Setup{Chunks: chunks, TicksPerSecond: 1e9})
	if err := memory.Populate(); err != nil {
		b.Fatal(err)
	}

	events := newBenchProgram().run(threads * batch * ring.ChunkEvents)
	file := filepath.Join(b.TempDir(), "drain.reel")
	w, err := reel.Create(file, reel.Header{Clock: reel.Clock{TicksPerSecond: 1e9}, PID: 1}, reel.Options{Force: true})
	if err != nil {
		b.Fatal(err)
	}
	c := &Collector{Config: Config{Switches: probes.New(probes.Config{}), Functions: &tables.Fixed{}}}
	d := ring.NewDrainer(memory, func(tid, _ int, name string) (ring.Sink, error) {
		w, err := w.Thread(reel.Thread{TID: tid, Process: 1, Name: name})
		return &thread{ThreadSink: w, c: c}, err
	})
	var all []*benchThread
	for tid := range threads {
		th := &benchThread{mem: mem, tid: tid + 1}
		th.register()
		all = append(all, th)
	}
	before := w.Stats().Bytes
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := 0.0
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		rest := events
		for _, th := range all {
			for range batch {
				th.fill(b, rest[:ring.ChunkEvents])
				rest = rest[ring.ChunkEvents:]
			}
		}
		b.StartTimer()
		from := cpuTime(b)
		for drained := 0; drained < len(events); {
			n, err := d.Round()
			if err != nil {
				b.Fatal(err)
			}
			if n == 0 {
				b.Fatalf("%d of %d events drained", drained, len(events))
			}
			drained += n
		}
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
		used += cpuTime(b) - from
	}
	b.StopTimer()
	total := float64(b.N) * float64(len(events))
	b.ReportMetric(total/used, "events/s")
	b.ReportMetric(total/b.Elapsed().Seconds(), "events/wall-s")
	b.ReportMetric(float64(w.Stats().Bytes-before)/total, "B/event")
	b.ReportMetric(0, "ns/op")
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}
