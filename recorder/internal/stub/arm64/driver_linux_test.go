package arm64

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A machine is a processor as the emulator has it.
type machine struct {
	cpu            string
	hwcap, hwcap2  uint64
	vectors        int // of SVE, in bytes
	singleStepping bool
	forgets        bool // its kernel's system calls forget what they may
}

var (
	oldMachine = machine{cpu: "cortex-a57"}
	lseMachine = machine{cpu: "neoverse-n1", hwcap: hwcapAtomics}
	sveMachine = machine{cpu: "max,sve256=on,sve512=off,sve-default-vector-length=32", hwcap: hwcapAtomics | hwcapSVE, vectors: 32, forgets: true}
	smeMachine = machine{cpu: "max,sve256=on,sve512=off,sve-default-vector-length=32", hwcap: hwcapAtomics | hwcapSVE, hwcap2: hwcap2SME, vectors: 32, forgets: true}
	streaming  = machine{cpu: "max,sme256=on,sme-default-vector-length=32", hwcap: hwcapAtomics | hwcapSVE, hwcap2: hwcap2SME, vectors: 32 | 1<<16}
	smeAlone   = machine{cpu: streaming.cpu, hwcap: hwcapAtomics, hwcap2: hwcap2SME, vectors: streaming.vectors}
)

// stepping is a machine on which signals may come between any two instructions.
func stepping(m machine) machine {
	m.singleStepping = true
	return m
}

// stubSetup says which event code the driver is to run, and where.
type stubSetup struct {
	machine    machine
	clock      stub.Clock
	lossless   bool
	shared     bool
	chunks     int
	divide     bool // some of the chunks into small ones
	ids        int
	spDelta    bool // entries whose stack pointer has moved already
	alive      bool // there is something in x16 and x17
	threads    bool // not all threads are recorded
	over       bool // rings in overwrite mode
	lazy       bool
	unmade     bool   // with lazy: the probes are never made
	off        bool   // all events are switched off
	noTLS      bool   // threads are told apart by the kernel
	stack      bool   // with noTLS: but for the first, by its stack
	described  bool   // with noTLS: and by the thread's descriptor
	min        bool   // exits take back entries; of no call, as long as HdrMin is 0
	depth      int    // how many calls are recorded in one another; 0 for any number
	every      uint32 // one call in so many is recorded; 0 for all
	inside     int    // up to which ID functions are those that are recorded, with what they call; 0 for any
	open       bool   // events of calls on the open stack
	tid        int32
	log        string // of instructions run
	hook       plan.Hook
	captures   *stub.Captures
	keeps      map[uint32]stub.Keep
	predicates int           // of each function
	marks      *stub.Capture // functions are markers, which carry that
	says, held bool          // they pause the recording and let it go on, by turns; each process by itself
	triggers   bool          // they begin and end spans, by turns
	follow     bool
	golang     bool           // of a Go program
	constant   *stub.Constant // of its markers
	// code makes other code than eventCode does.
	code func(t testing.TB, c *coder) (funcs []uint64)
}

var driverProgram struct {
	once sync.Once
	path string
	err  error
}

var cleanups []func()

func TestMain(m *testing.M) {
	code := m.Run()
	for _, f := range cleanups {
		f()
	}
	os.Exit(code)
}

// buildDriver builds the driver once for all tests of a run.
func buildDriver(t testing.TB) string {
	t.Helper()
	realtest.Need(t, realtest.Clang, realtest.QEMUARM64)
	d := &driverProgram
	d.once.Do(func() {
		dir, err := os.MkdirTemp("", "callreel-stub")
		if err != nil {
			d.err = err
			return
		}
		cleanups = append(cleanups, func() { os.RemoveAll(dir) })
		clang, err := realtest.Clang.Find()
		if err != nil {
			d.err = err
			return
		}
		out := filepath.Join(dir, "driver")
		msg, err := exec.Command(clang, "--target=aarch64-linux-gnu", "-O2", "-ffreestanding", "-fno-builtin", "-nostdlib", "-static", "-fuse-ld=lld",
			"-mgeneral-regs-only", "-mno-outline-atomics", "-o", out, "testdata/driver.c", "testdata/state.S").CombinedOutput()
		if err != nil {
			d.err = fmt.Errorf("%w\n%s", err, msg)
		}
		d.path = out
	})
	if d.err != nil {
		t.Fatal(d.err)
	}
	return d.path
}

// A flip is an instruction that may be changed while threads run: a byte of it.
type flip struct{ at, was, other uint64 }

// eventCode makes a function for the entry and one for the exit of each ID. Its flips are the switches of entries.
func eventCode(t testing.TB, s stubSetup, gate uint64) (code []byte, funcs []uint64, flips []flip) {
	t.Helper()
	cfg := &stub.Config{TIDOffset: s.tid, Gate: gate, Ring: testRing, Clock: s.clock, Lossless: s.lossless, Threads: s.threads, Overwrite: s.over, Lazy: s.lazy,
		HWCap: s.machine.hwcap, HWCap2: s.machine.hwcap2, Follow: s.follow, Anchor: gate, Names: true, Loads: true, NoTLS: s.noTLS, Min: s.min}
	if s.noTLS {
		cfg.TIDOffset = 0 // it isn't known
	}
	if s.described {
		cfg.DescriptorAt, cfg.DescriptorID = 8, 16 // as the driver has it
	}
	c := &coder{Asm: arm64.NewAsm(testArena, nil), cfg: cfg, routines: &routines{}, base: testArena}
	if s.golang {
		cfg.Go = &golang.Runtime{GoID: testGoID, ProcID: testProcID, Stacks: testRing + ring.Size(s.chunks)}
		cfg.Args = cfg.Go.Stacks + ring.GoStacksSize
	}
	if s.machine.forgets {
		c.behindCall = forget
	}
	c.insteadOf = readMemory
	c.emitThreadID()
	c.routines.slow = c.emitSlow()
	if s.follow {
		c.routines.follow, c.routines.exec = c.emitFollow(), c.emitExec()
	}
	if s.chooses() || s.open {
		cfg.Depth, cfg.Inside, cfg.Every = s.depth > 0, s.inside > 0, s.every
		cfg.Areas = testRing + ring.Size(s.chunks)
		cfg.Counts = cfg.Areas + ring.AreasSize
		c.emitOpenStack()
		c.emitChosen()
	}
	switch {
	case s.hook.Restricts():
		c.routines.seccomp, c.routines.names = c.emitSeccomp(), c.emitNames()
	case s.hook == plan.HookLoader:
		c.routines.loader = c.emitLoader()
	}
	if s.shared {
		c.emitShared()
	}
	switch {
	case s.golang:
		s.goRoutines(t, c)
	case s.captures != nil:
		cfg.Args, cfg.Captures = testRing+ring.Size(s.chunks), map[uint32]*stub.Captures{}
		if s.captures.Chosen() {
			cfg.Areas = cfg.Args + ring.ArgsSize
			c.emitOpenStack()
		}
		var fns []stub.Probe
		for id := 1; id <= s.ids; id++ {
			cfg.Captures[uint32(id)] = s.captures
			fns = append(fns, stub.Probe{ID: uint32(id)})
		}
		for _, exit := range []bool{false, true} {
			if err := s.captures.Of(exit).LayOut(); err != nil {
				t.Fatal(err)
			}
		}
		c.emitCaptures(fns)
	}
	if s.predicates > 0 && !s.golang {
		cfg.Predicates = testRing + ring.Size(s.chunks)
		c.emitPredicates()
	}
	if s.keeps != nil {
		cfg.Keeps, cfg.Kept = s.keeps, testRing+ring.Size(s.chunks)
	}
	if s.marks != nil && !s.golang {
		s.markers(t, c)
	}
	if s.lazy || s.shared {
		var deltas []int32
		for id := range s.ids + 1 {
			p := s.place(id, false)
			if d := p.lowered(); !slices.Contains(deltas, d) {
				deltas = append(deltas, d)
			}
		}
		c.emitLower(deltas)
	}
	c.Resolve()
	var slots []stub.Slot
	if s.code != nil {
		funcs = s.code(t, c)
		code, err := c.Finish()
		if err != nil {
			t.Fatal(err)
		}
		return code, funcs, nil
	}
	for id := 1; id <= s.ids; id++ {
		for _, exit := range []bool{false, true} {
			c.Align(16)
			from := c.offset()
			funcs = append(funcs, c.PC())
			p := s.place(id, exit)
			delta := p.spDelta
			if delta != 0 {
				c.SubImm(sp, sp, int64(delta))
			}
			n := len(c.switches)
			c.low = 0
			if s.marks != nil {
				c.checkedMark(id)
			} else if s.captures != nil {
				c.capturedEvent(p, s.captures, s.captures.Of(exit))
			} else {
				c.event(p)
			}
			if s.predicates > 0 {
				c.predicates(p, stub.Predicates{Count: uint8(s.predicates)})
			}
			if !exit {
				c.hook(s.hook)
			}
			if delta != 0 {
				c.AddImm(sp, sp, int64(delta))
			}
			c.Ret(lr)
			c.flush()
			c.Resolve()
			slots = c.settle(slots, from)
			for _, sw := range c.switches[n:] {
				now := at(c.Since(0), sw.start)
				on, off, _ := sw.words(now)
				if s.off {
					put(c.Since(0), sw.start, off)
				}
				if shift := 8 * sw.changes(); !exit {
					if sw.unmade && s.unmade {
						on = now
					}
					flips = append(flips, flip{c.Base() + uint64(sw.start) + uint64(sw.changes()), uint64(on >> shift & 0xFF), uint64(off >> shift & 0xFF)})
				}
			}
		}
	}
	code, err := c.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if s.lazy && !s.unmade && !s.off {
		for _, k := range slots {
			binary.LittleEndian.PutUint64(code[k.At:], k.Word)
		}
	}
	return code, funcs, flips
}

func (s *stubSetup) chooses() bool { return s.depth > 0 || s.every > 0 || s.inside > 0 }

// place is where a function's entry, or exit, is. With alive set one of the two has something in x16 and x17, by turns, or both.
func (s *stubSetup) place(id int, exit bool) place {
	p := place{id: uint32(id), exit: exit, inside: id <= s.inside, alive: s.alive && (id%3 == 0 || exit == (id%3 == 1))}
	if s.spDelta && !exit {
		p.spDelta = int32(16 * (id % 5))
	}
	return p
}

// driver is a running child with event code.
type driver struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	*testMemory
	drainer *ring.Drainer
	threads []*tally
	code    []byte
	funcs   []uint64
	// goroutines is what there is of a Go program, of which there is one thread.
	goroutines *goTally
}

func startDriver(t testing.TB, s stubSetup) *driver {
	t.Helper()
	if s.machine.cpu == "" {
		s.machine = lseMachine
	}
	if s.ids == 0 {
		s.ids = 8
	}
	if s.chunks == 0 {
		s.chunks = 64
	}
	if s.tid == 0 {
		s.tid = glibcTID
	}
	path := buildDriver(t)
	const room = 4 * pageBytes
	code, funcs, flips := eventCode(t, s, testArena+room)
	if len(code) > room {
		t.Fatalf("code of %d bytes", len(code))
	}
	d := &driver{t: t, code: code, funcs: funcs}
	more := uint64(0)
	switch {
	case s.golang:
		more = ring.GoStacksSize + ring.ArgsSize + ring.PredicatesSize
	case s.marks != nil:
		more = ring.ArgsSize + ring.PredicatesSize
	case s.captures != nil:
		more = ring.ArgsSize + ring.AreasSize
	case s.predicates > 0:
		more = ring.PredicatesSize
	case s.keeps != nil:
		more = ring.KeptSize
	case s.chooses() || s.open:
		more = ring.AreasSize + ring.CountsSize
	}
	d.testMemory = newTestMemory(t, s.chunks, more, s.over, s.divide)
	d.setHeader(ring.HdrDepth, uint64(s.depth))
	// The emulator's counter isn't this machine's, so that the heartbeat says nothing.
	d.setHeader(ring.HdrWaitLimit, 1<<62)
	d.setHeader(ring.HdrCloseLimit, 1<<62)
	if err := d.mem.SetGates([]uint64{testArena + room}); err != nil {
		t.Fatal(err)
	}
	d.drainer = ring.NewDrainer(d.mem, func(tid, _ int, name string) (ring.Sink, error) {
		if s.golang {
			d.goroutines = &goTally{entries: map[uint64]int{}, captures: s.captures, marks: map[uint32]int{}}
			return d.goroutines, nil
		}
		k := &tally{maxID: uint32(s.ids), name: name, captures: s.captures, keeps: s.keeps, marks: s.marks}
		d.threads = append(d.threads, k)
		return k, nil
	})
	stack := uint64(0)
	if s.stack {
		stack = 1
	}
	plan := make([]byte, 0, pageBytes+room)
	for _, v := range []uint64{testArena, uint64(len(code)), room, testRing, d.size, testRing + ring.SlotsOff | GateTag, uint64(int64(s.tid)), uint64(s.machine.vectors), stack, uint64(len(funcs))} {
		plan = binary.LittleEndian.AppendUint64(plan, v)
	}
	for _, f := range funcs {
		plan = binary.LittleEndian.AppendUint64(plan, f)
	}
	plan = append(plan, make([]byte, 8*(10+256)-len(plan))...) // room for functions
	plan = binary.LittleEndian.AppendUint64(plan, uint64(len(flips)))
	for _, f := range flips {
		for _, v := range []uint64{f.at, f.was, f.other} {
			plan = binary.LittleEndian.AppendUint64(plan, v)
		}
	}
	plan = append(append(plan, make([]byte, pageBytes-len(plan))...), code...)
	name := filepath.Join(t.TempDir(), "plan")
	if err := os.WriteFile(name, append(plan, make([]byte, pageBytes+room-len(plan))...), 0o600); err != nil {
		t.Fatal(err)
	}
	planFile, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer planFile.Close()
	qemu, err := realtest.QEMUARM64.Find()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-cpu", s.machine.cpu}
	if s.log != "" {
		args = append(args, "-singlestep", "-d", "exec,nochain", "-D", s.log)
	} else if s.machine.singleStepping {
		args = append(args, "-singlestep")
	}
	d.cmd = exec.Command(qemu, append(args, path)...)
	d.cmd.ExtraFiles = []*os.File{d.file, planFile}
	var stderr bytes.Buffer
	d.cmd.Stderr = &stderr
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
	return d
}

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
		d.t.Fatalf("the driver has gone: %v %q", err, line)
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
			time.Sleep(time.Millisecond)
		}
	}
}

func (d *driver) made() uint64 {
	d.t.Helper()
	d.send("made")
	n, err := strconv.ParseUint(d.answer(), 10, 64)
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
	untimed func(k *tally) uint64
	drops   bool // there may be some
	states  bool // functions were called by themselves: entries have no exits
	signals bool // they may come between the claim of an event and its time
}

// finish drains everything and checks that it adds up to the calls made.
func (d *driver) finish(want expect) {
	d.t.Helper()
	made := d.made()
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
	if sum.Dropped != 0 && !want.drops {
		d.t.Errorf("%d dropped", sum.Dropped)
	}
	for _, k := range d.threads {
		if k.unknown != 0 {
			d.t.Errorf("%s: %d events of functions that there are not", k.name, k.unknown)
		}
		if want.states {
			continue
		}
		if missing := k.abandoned + uint64(len(k.open)); missing > k.lost || k.unmatched > k.dropped {
			d.t.Errorf("%s: %d entries without an exit, %d exits without an entry; %d lost, %d dropped", k.name, missing, k.unmatched, k.lost, k.dropped)
		}
		if k.backward != 0 && !want.signals {
			d.t.Errorf("%s: %d events go back in time", k.name, k.backward)
		}
		untimed := uint64(0)
		if want.untimed != nil {
			untimed = want.untimed(k)
		}
		if k.untimed != untimed {
			d.t.Errorf("%s: %d of %d events have no time, want %d", k.name, k.untimed, k.entries+k.exits, untimed)
		}
	}
}

// forget appends what a system call may do to the registers of SVE, and the emulator's doesn't: the upper bits of vectors become zero, and all
// predicates.
func forget(c *coder) {
	for p := uint32(0); p < 16; p++ {
		c.Word(0x2518E400 | p) // pfalse p.b
	}
	c.Word(0x25289000) // wrffr p0.b
	for v := uint32(0); v < 32; v++ {
		c.Word(0x4EA01C00 | v<<16 | v<<5 | v) // mov v.16b, v.16b
	}
}

// readMemory appends what process_vm_readv(2) does, which the emulator doesn't have, with two places to read from; there is something
// only in the 64 KiB that the driver begins with. It clobbers what may be clobbered there.
func readMemory(c *coder, number uint16) bool {
	if number != sysProcessVMReadv {
		return false
	}
	again, next, bad, done := c.NewLabel(), c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.Load(8, x5, arm64.At(x1, 0))
	c.Movz(x0, 0, 0)
	c.Place(again)
	c.LoadPair(x1, x2, arm64.Post(x3, 16))
	c.Place(next)
	c.Cbz(x2, done)
	c.LsrImm(x8, x1, 16)
	c.SubImm(x8, x8, 0x20)
	c.Cbnz(x8, bad)
	c.Load(1, x8, arm64.Post(x1, 1))
	c.Store(1, x8, arm64.Post(x5, 1))
	c.AddImm(x0, x0, 1)
	c.SubImm(x2, x2, 1)
	c.B(next)
	c.Place(done)
	c.SubImm(x4, x4, 1)
	c.Cbnz(x4, again)
	out := c.NewLabel()
	c.B(out)
	c.Place(bad)
	c.Cbnz(x0, out)
	c.Movn(x0, 13, 0) // -EFAULT
	c.Place(out)
	return true
}
