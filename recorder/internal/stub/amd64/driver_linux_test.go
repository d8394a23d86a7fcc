package amd64

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

const targetsDir = "../../../../testdata/targets/"

// Where things stand in programs that patch themselves: linked to low fixed addresses, so within reach of the arena.
const (
	testArena = 0x6000_0000
	testRing  = 0x100_0000_0000
	pageBytes = 4096
)

var driverProgram struct {
	once sync.Once
	path string
	tid  int32
}

// buildDriver builds the driver once for all tests of a run.
func buildDriver(t *testing.T) (path string, tidOffset int32) {
	t.Helper()
	realtest.Need(t, realtest.AMD64, realtest.GCC)
	d := &driverProgram
	d.once.Do(func() {
		dir, err := os.MkdirTemp("", "callreel-probe")
		if err != nil {
			t.Fatal(err)
		}
		cleanups = append(cleanups, func() { os.RemoveAll(dir) })
		out := filepath.Join(dir, "driver")
		msg, err := exec.Command("gcc", "-O2", "-no-pie", "-pthread", "-o", out,
			"testdata/selfpatch.c", "testdata/driver.c", targetsDir+"state.S").CombinedOutput()
		if err != nil {
			t.Fatalf("gcc: %v\n%s", err, msg)
		}
		d.path, d.tid = out, tidOffsetOf(t, out)
	})
	if d.path == "" {
		t.Fatal("the driver was not built")
	}
	return d.path, d.tid
}

var cleanups []func()

func TestMain(m *testing.M) {
	code := m.Run()
	for _, f := range cleanups {
		f()
	}
	os.Exit(code)
}

// tidOffsetOf asks a program with selfpatch.c in it where its C library keeps the thread's ID.
func tidOffsetOf(t testing.TB, path string) int32 {
	t.Helper()
	cmd := exec.Command(path)
	cmd.Env = []string{"SELFPATCH=offset"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	off, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(off)
}

// testMemory is ring memory that a child maps as well.
type testMemory struct {
	*ring.Memory
	file *os.File
	raw  []byte // a mapping of the header and the slots' beginning, to look at and to spoil
	size uint64
}

func newTestMemory(t testing.TB, chunks int, more uint64, overwrite, divide bool) *testMemory {
	t.Helper()
	fd, err := unix.MemfdCreate(ring.MemfdName, unix.MFD_CLOEXEC)
	realtest.NeedThat(t, "memfd_create", err)
	m := &testMemory{file: os.NewFile(uintptr(fd), "ring"), size: ring.Size(chunks) + more}
	t.Cleanup(func() { m.file.Close() })
	if err := unix.Ftruncate(fd, int64(m.size)); err != nil {
		t.Fatal(err)
	}
	if m.Memory, err = ring.Map(fd, m.size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Memory.Close() })
	if m.raw, err = unix.Mmap(fd, 0, ring.ChunksOff, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(m.raw) })
	m.SetBase(testRing)
	err = m.Init(ring.Setup{Chunks: chunks, TicksPerSecond: 3e9, Overwrite: overwrite, Divide: divide})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *testMemory) header(off int) uint64       { return binary.LittleEndian.Uint64(m.raw[off:]) }
func (m *testMemory) setHeader(off int, v uint64) { binary.LittleEndian.PutUint64(m.raw[off:], v) }

// selfPatchFile writes what selfpatch.c reads.
func selfPatchFile(t testing.TB, code []byte, patches []stub.Patch, mem *testMemory) string {
	t.Helper()
	room := (uint64(len(code)) + pageBytes - 1) &^ (pageBytes - 1)
	if len(code)%8 != 0 {
		code = append(code[:len(code):len(code)], make([]byte, 8-len(code)%8)...)
	}
	var b []byte
	for _, v := range []uint64{testArena, uint64(len(code)), room, testRing + ring.SlotsOff, testRing, mem.size, uint64(len(patches))} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = append(b, code...)
	for _, p := range patches {
		b = binary.LittleEndian.AppendUint64(b, p.Addr)
		var tail [8]byte
		tail[0] = byte(copy(tail[1:], p.New()))
		b = append(b, tail[:]...)
	}
	name := filepath.Join(t.TempDir(), "plan")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// gateFor is where the gate of code of that size is: behind it.
func gateFor(code []byte) uint64 {
	return testArena + (uint64(len(code))+pageBytes-1)&^(pageBytes-1)
}

// stubSetup says which event code the driver is to run.
type stubSetup struct {
	clock      stub.Clock
	lossless   bool
	shared     bool
	chunks     int
	divide     bool // some of the chunks into small ones
	ids        int
	spDelta    bool // entries whose stack pointer has moved already
	hook       plan.Hook
	follow     bool
	names      bool   // names that threads give themselves are kept
	min        bool   // exits take back entries; of no call, as long as HdrMin is 0
	threads    bool   // not all threads are recorded
	depth      int    // how many calls are recorded in one another; 0 for any number
	every      uint32 // one call in so many is recorded; 0 for all
	inside     int    // up to which ID functions are those that are recorded, with what they call; 0 for any
	open       bool   // events of calls on the open stack
	captures   *stub.Captures
	keeps      map[uint32]stub.Keep
	over       bool // rings in overwrite mode
	noTLS      bool // threads are told apart by the kernel
	stack      bool // with noTLS: but for the first, by its stack
	described  bool // with noTLS: and by the thread's descriptor
	predicates int  // of each function
	says       bool // functions are markers that pause recording, and go on, in turn
	held       bool // with says: each process by itself, as where children are followed
}

// more is the memory needed behind the rings.
func (s *stubSetup) more() uint64 {
	if s.every > 0 {
		return ring.AreasSize + ring.CountsSize
	}
	if s.open || s.depth > 0 || s.inside > 0 {
		return ring.AreasSize
	}
	if s.captures != nil {
		return ring.ArgsSize + ring.AreasSize
	}
	if s.predicates > 0 {
		return ring.PredicatesSize
	}
	if s.keeps != nil {
		return ring.KeptSize
	}
	return 0
}

// glibcSelf is where glibc has a thread's pointer to its own descriptor (tcbhead_t, self).
const glibcSelf = 0x10

// driver is a running child with event code.
type driver struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	mem     *testMemory
	drainer *ring.Drainer
	threads []*tally
	code    []byte
	entries []uint64
}

// eventCode makes a function for the entry and one for the exit of each ID.
func eventCode(t *testing.T, s stubSetup, tid int32, gate uint64) (code []byte, funcs []uint64) {
	t.Helper()
	cfg := &stub.Config{TIDOffset: tid, Gate: gate, Ring: testRing, Clock: s.clock, Lossless: s.lossless, Follow: s.follow, Anchor: gate, Min: s.min, Threads: s.threads}
	c := &coder{Asm: amd64.NewAsm(testArena, nil), cfg: cfg, lang: cLanguage(), routines: &routines{}}
	if s.says {
		cfg.Says = map[uint32]stub.Say{}
		for id := uint32(1); id <= uint32(s.ids); id++ {
			cfg.Says[ring.MarkID(id)] = stub.SayPause + stub.Say(1-id%2)
		}
	}
	if s.held {
		cfg.Held = testRing + heldWord
	}
	cfg.Overwrite = s.over
	if cfg.NoTLS = s.noTLS; s.noTLS {
		cfg.TIDOffset = 0 // it isn't known
	}
	if s.described {
		cfg.DescriptorAt, cfg.DescriptorID = glibcSelf, tid
	}
	c.emitThreadID()
	c.routines.slow = c.emitSlow()
	if s.predicates > 0 {
		cfg.Predicates = testRing + ring.Size(s.chunks)
		c.emitPredicates()
	}
	if s.depth > 0 || s.inside > 0 || s.every > 0 {
		cfg.Depth, cfg.Inside, cfg.Every = s.depth > 0, s.inside > 0, s.every
		cfg.Areas = testRing + ring.Size(s.chunks)
		cfg.Counts = cfg.Areas + ring.AreasSize
		c.emitOpenStack()
		c.emitChosen()
	}
	if s.open {
		cfg.Areas = testRing + ring.Size(s.chunks)
		c.emitOpenStack()
	}
	if s.captures != nil {
		captureAll(t, c, s)
	}
	if s.keeps != nil {
		cfg.Keeps, cfg.Kept = s.keeps, testRing+ring.Size(s.chunks)
		c.emitKept()
	}
	c.routines.seccomp = c.emitSeccomp(c.routines.nap)
	if s.hook == plan.HookLoader {
		cfg.Loads = true
		c.routines.loader = c.emitLoader(c.routines.nap)
	}
	if s.follow {
		c.routines.follow, c.routines.exec = c.emitFollow(), c.emitExec(c.routines.nap)
	}
	if s.names {
		c.routines.names = c.emitNames()
	}
	if s.shared {
		shared := [2]uint64{}
		for i := range shared {
			c.Align(64)
			shared[i] = c.PC()
			c.shared(i == 1, 0)
			c.flush()
		}
		c.routines.shared = shared
	}
	for id := uint32(1); id <= uint32(s.ids); id++ {
		for _, exit := range []bool{false, true} {
			c.Align(16)
			funcs = append(funcs, c.PC())
			delta := int32(0)
			if s.spDelta && !exit {
				delta = int32(8 * id)
			}
			if delta != 0 {
				c.Lea(amd64.RSP, amd64.At(amd64.RSP, -delta))
			}
			c.inside = int(id) <= s.inside
			switch {
			case s.says:
				cEvents{}.mark(c, ring.MarkID(id), 0)
			case s.open:
				c.openEvent(id, exit)
			case s.captures != nil:
				c.lang.captured(c, id, exit, delta, s.captures.Of(exit))
			default:
				c.lang.event(c, id, exit, delta)
			}
			if s.predicates > 0 {
				c.lang.predicates(c, stub.Predicates{First: 0, Count: uint8(s.predicates)}, id, exit, delta)
			}
			if !exit {
				c.hook(s.hook)
			}
			if delta != 0 {
				c.Lea(amd64.RSP, amd64.At(amd64.RSP, delta))
			}
			c.Ret()
			c.flush()
		}
	}
	code, err := c.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return code, funcs
}

// heldWord is where, in the ring's header, a test keeps what is each process's own.
const heldWord = ring.HdrNamed + 128

// otherGate is where, behind the gate, the driver keeps a word that stands for another arena's.
const otherGate = 8 * 64

func startDriver(t *testing.T, s stubSetup) *driver {
	t.Helper()
	if s.ids == 0 {
		s.ids = 8
	}
	if s.chunks == 0 {
		s.chunks = 64
	}
	path, tid := buildDriver(t)
	first, _ := eventCode(t, s, tid, testArena+1<<20)
	code, funcs := eventCode(t, s, tid, gateFor(first))
	d := &driver{t: t, mem: newTestMemory(t, s.chunks, s.more(), s.over, s.divide), code: code, entries: funcs}
	d.mem.setHeader(ring.HdrDepth, uint64(s.depth))
	if err := d.mem.SetGates([]uint64{gateFor(first), gateFor(first) + otherGate}); err != nil {
		t.Fatal(err)
	}
	d.drainer = ring.NewDrainer(d.mem.Memory, func(tid, _ int, name string) (ring.Sink, error) {
		k := &tally{maxID: uint32(s.ids), name: name, captures: s.captures, keeps: s.keeps}
		d.threads = append(d.threads, k)
		return k, nil
	})
	d.drainer.Ran = func(tid int) (time.Duration, bool) { return process.ThreadRan(d.cmd.Process.Pid, tid) }
	var args []string
	for _, f := range funcs {
		args = append(args, fmt.Sprintf("%x", f))
	}
	d.cmd = exec.Command(path, args...)
	d.cmd.Env = []string{"SELFPATCH=" + selfPatchFile(t, code, nil, d.mem)}
	d.cmd.ExtraFiles = []*os.File{d.mem.file}
	var stderr bytes.Buffer
	d.cmd.Stderr = &stderr
	var err error
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.out = bufio.NewReader(out)
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.in.Close()
		stuck := time.AfterFunc(20*time.Second, func() { d.cmd.Process.Kill() })
		defer stuck.Stop()
		if err := d.cmd.Wait(); err != nil {
			t.Errorf("the driver ended with %v\n%s", err, stderr.String())
		}
	})
	if s.stack {
		d.tellStack(gateFor(first))
	}
	return d
}

// tellStack tells the code where the driver's first stack is.
func (d *driver) tellStack(gate uint64) {
	d.t.Helper()
	d.do("gate 1")
	p, err := process.Open(d.cmd.Process.Pid)
	if err != nil {
		d.t.Fatal(err)
	}
	defer p.Close()
	maps, err := p.Maps()
	if err != nil {
		d.t.Fatal(err)
	}
	for _, m := range maps {
		if m.Special != "[stack]" {
			continue
		}
		words := binary.LittleEndian.AppendUint64(nil, uint64(d.cmd.Process.Pid))
		words = binary.LittleEndian.AppendUint64(words, m.End-1<<20)
		words = binary.LittleEndian.AppendUint64(words, 1<<20)
		if _, err := p.WriteAt(words, gate+stub.GateThread); err != nil {
			d.t.Fatal(err)
		}
		return
	}
	d.t.Fatal("the driver has no stack")
}

// send gives a command; its answer is still to be read.
func (d *driver) send(format string, args ...any) {
	d.t.Helper()
	if _, err := fmt.Fprintf(d.in, format+"\n", args...); err != nil {
		d.t.Fatal(err)
	}
}

func (d *driver) answer() string {
	d.t.Helper()
	line, err := d.out.ReadString('\n')
	if err != nil {
		d.t.Fatalf("the driver has gone: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

// do gives a command and expects it to succeed.
func (d *driver) do(format string, args ...any) {
	d.t.Helper()
	d.send(format, args...)
	if a := d.answer(); a != "ok" {
		d.t.Fatalf("%s: %s", fmt.Sprintf(format, args...), a)
	}
}

// doDraining is do with rounds of draining until the answer comes.
func (d *driver) doDraining(format string, args ...any) {
	d.t.Helper()
	d.send(format, args...)
	done := make(chan string, 1)
	go func() {
		line, _ := d.out.ReadString('\n')
		done <- strings.TrimSuffix(line, "\n")
	}()
	for {
		select {
		case a := <-done:
			if a != "ok" {
				d.t.Fatalf("%s: %q", fmt.Sprintf(format, args...), a)
			}
			d.round()
			return
		default:
			d.round()
			time.Sleep(100 * time.Microsecond) // a processor of the driver's own, if there are two
		}
	}
}

// number asks for one.
func (d *driver) number(command string, args ...any) int {
	d.t.Helper()
	d.send(command, args...)
	n, err := strconv.Atoi(d.answer())
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}

func (d *driver) round() {
	d.t.Helper()
	if _, err := d.drainer.Round(); err != nil {
		d.t.Fatal(err)
	}
}

// expect is what finish holds the recording against.
type expect struct {
	clock   stub.Clock
	drops   bool // there must be some; else there must be none
	mayDrop bool // but here there may be some, and lost exits
	signals bool // they may come between the claim of an event and its time
	lost    bool // exits of accepted calls may be lost: even the reserve was used up
}

// slot is the offset of the first thread's slot in the ring memory.
func (d *driver) slot() int { return ring.SlotsOff + d.cmd.Process.Pid*ring.SlotSize }

// finish drains everything and checks that it adds up to the calls made.
func (d *driver) finish(want expect) {
	d.t.Helper()
	made := uint64(d.number("made"))
	d.round()
	if err := d.drainer.Finish(); err != nil {
		d.t.Fatal(err)
	}
	sum := d.drainer.Totals()
	if sum.Entries+sum.Dropped != made {
		d.t.Errorf("%d recorded + %d dropped, yet %d made", sum.Entries, sum.Dropped, made)
	}
	if sum.Torn != 0 {
		d.t.Errorf("%d events torn", sum.Torn)
	}
	if (sum.Dropped != 0) != want.drops && !want.mayDrop {
		d.t.Errorf("%d dropped", sum.Dropped)
	}
	for _, s := range d.threads {
		if s.unknown != 0 {
			d.t.Errorf("%s: %d events of functions that there are not", s.name, s.unknown)
		}
		// Exits of calls that were dropped in an earlier time of dropping look like any other; they may be written, or lost.
		missing := s.abandoned + uint64(len(s.open))
		if missing > s.lost || s.lost-missing+s.unmatched > s.dropped {
			d.t.Errorf("%s: %d accepted entries have no exit, %d are counted as lost", s.name, missing, s.lost)
		}
		if s.lost != 0 && !want.lost && !want.mayDrop {
			d.t.Errorf("%s: %d exits of accepted calls lost", s.name, s.lost)
		}
		if s.unmatched > s.dropped {
			d.t.Errorf("%s: %d exits without an entry, yet only %d dropped", s.name, s.unmatched, s.dropped)
		}
		if !want.signals && s.backward != 0 {
			d.t.Errorf("%s: %d events go back in time", s.name, s.backward)
		}
		untimed := map[stub.Clock]uint64{stub.ClockFull: 0, stub.ClockExit: s.entries, stub.ClockNone: s.entries + s.exits}[want.clock]
		if s.untimed != untimed {
			d.t.Errorf("%s: %d of %d events have no time, want %d", s.name, s.untimed, s.entries+s.exits, untimed)
		}
	}
}
