package target

import (
	"encoding/binary"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/ring/ringtest"
)

// A recorder that stood still for so long that the target's threads have closed
// the gates opens them again, and tells its user.
func TestGatesThatWereClosedAreOpenedAgain(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	cmd := exec.Command("cat")
	proc := realtest.StartCommand(t, cmd)
	p, pages := heapOf(t, proc)
	var said []string
	memory, _ := ringtest.Memory(t, ring.Setup{Chunks: ring.MinChunks, TicksPerSecond: 3e9})
	s := &Target{Process: p, FD: -1, Memory: memory, Arenas: []*Arena{{Base: pages[0] - PageSize}, {Base: pages[1] - PageSize}}}
	s.Runtime.Ring = 0x7000_0000_0000
	reopen := func() error {
		return s.ReopenGatesAfter(33*time.Second, func(format string, args ...any) { said = append(said, format) })
	}
	open := (s.Runtime.Ring + ring.SlotsOff) | gateTag
	gates := func() (words [2]uint64) {
		t.Helper()
		for i, a := range s.Arenas {
			var word [8]byte
			if _, err := p.ReadAt(word[:], a.Gate()); err != nil {
				t.Fatal(err)
			}
			words[i] = binary.LittleEndian.Uint64(word[:])
		}
		return words
	}
	for _, c := range []struct {
		name   string
		before [2]uint64
		notice bool
	}{
		{"both closed", [2]uint64{0, 0}, true},
		{"one closed", [2]uint64{open, 0}, true},
		{"none closed", [2]uint64{open, open}, false},
	} {
		for i, a := range s.Arenas {
			if err := s.WriteWord(a.Gate(), c.before[i]); err != nil {
				t.Fatal(err)
			}
		}
		said = nil
		if err := reopen(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := gates(); got != [2]uint64{open, open} {
			t.Errorf("%s: the gates are %#x, want %#x", c.name, got, open)
		}
		if got := len(said) == 1 && strings.Contains(said[0], "stood still"); got != c.notice || len(said) > 1 {
			t.Errorf("%s: the user was told %q", c.name, said)
		}
	}
	// A target that has ended is not this function's business.
	proc.Wait()
	if err := reopen(); err != nil {
		t.Errorf("the target has ended: %v", err)
	}
}

// So does one on a machine that slept: by the clock that threads go by there was no heartbeat, though nobody stood still.
func TestGatesThatWereClosedAsTheMachineSleptAreOpenedAgain(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	proc := realtest.StartCommand(t, exec.Command("cat"))
	p, pages := heapOf(t, proc)
	const real, slept = 3 * time.Second, 30 * time.Second // the clock runs ten times as fast as it says
	from := ring.Ticks()
	time.Sleep(100 * time.Millisecond)
	memory, _ := ringtest.Memory(t, ring.Setup{Chunks: ring.MinChunks, TicksPerSecond: 10 * (ring.Ticks() - from) / uint64(slept/real)})
	s := &Target{Process: p, FD: -1, Memory: memory, Arenas: []*Arena{{Base: pages[0] - PageSize}}}
	s.Runtime.Ring = 0x7000_0000_0000
	var said []string
	look := func() uint64 {
		t.Helper()
		if err := s.ReopenGatesAfter(time.Millisecond, func(format string, args ...any) { said = append(said, format) }); err != nil {
			t.Fatal(err)
		}
		var word [8]byte
		if _, err := p.ReadAt(word[:], s.Arenas[0].Gate()); err != nil {
			t.Fatal(err)
		}
		return binary.LittleEndian.Uint64(word[:])
	}
	shut := func() {
		if err := s.WriteWord(s.Arenas[0].Gate(), 0); err != nil {
			t.Fatal(err)
		}
	}
	shut()
	if gate := look(); gate != 0 || len(said) > 0 {
		t.Fatalf("the gate is %#x without a silence, said %q", gate, said)
	}
	time.Sleep(real)
	memory.Beat()
	for range 2 { // another thread may be late
		if gate := look(); gate == 0 {
			t.Fatal("the gate is closed still")
		}
		shut()
	}
	if len(said) != 1 || !strings.Contains(said[0], "the machine stood still") {
		t.Errorf("said %q", said)
	}
}

// heapOf opens a process and returns two pages of its heap that it does not use.
func heapOf(t *testing.T, proc *realtest.Proc) (*process.Process, [2]uint64) {
	t.Helper()
	const page = 4096 // a heap has two of 64 KiB, and we use two words
	for start := time.Now(); time.Since(start) < 30*time.Second; time.Sleep(time.Millisecond) {
		p, err := process.Open(proc.Pid())
		if err != nil {
			continue // it is only being started
		}
		maps, err := p.Maps()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range maps {
			if m.Special == "[heap]" && m.Size() >= 3*page {
				t.Cleanup(func() {
					if err := p.Close(); err != nil {
						t.Error(err)
					}
				})
				return p, [2]uint64{m.End - 2*page, m.End - page}
			}
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the target has no heap")
	return nil, [2]uint64{}
}
