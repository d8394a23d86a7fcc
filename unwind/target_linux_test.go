package unwind_test

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/unwind"
)

// target is a running program with what a walk needs of it.
type target struct {
	t     testing.TB
	p     *process.Process
	maps  unwind.Map
	files map[string]*object.Image
	exe   string
}

// start starts a target as a child of a shell, not of ours: os/exec waits for children
// and would take their stops, which are for the tracer, for their ends.
func start(t testing.TB, path string, args ...string) *target {
	t.Helper()
	realtest.Need(t, realtest.LivePtrace)
	shell := []string{"-c", `exec 3<&0; "$0" "$@" <&3 3<&- & exec 0</dev/null 3<&-; wait $!`, path}
	p := realtest.Start(t, "/bin/sh", append(shell, args...)...)
	children := realtest.Children(p.Pid())
	if len(children) != 1 {
		t.Fatalf("the shell has %d children", len(children))
	}
	t.Cleanup(func() { p.Finish() })
	return attach(t, children[0])
}

// liveMemory is a running process's memory.
type liveMemory struct{ p *process.Process }

func (m liveMemory) ReadMemory(addr uint64, buf []byte) (int, error) {
	return m.p.ReadUpTo(buf, addr), nil
}

// attach opens the process that a test has started.
func attach(t testing.TB, pid int) *target {
	t.Helper()
	realtest.Need(t, realtest.LivePtrace)
	p, err := process.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	target := &target{t: t, p: p, files: map[string]*object.Image{}}
	if target.exe, _, err = p.Exe(); err != nil {
		t.Fatal(err)
	}
	target.refresh()
	return target
}

// refresh reads the maps.
func (x *target) refresh() {
	x.t.Helper()
	maps, err := x.p.Maps()
	if err != nil {
		x.t.Fatal(err)
	}
	images := map[string]unwind.Image{}
	x.maps = x.maps[:0]
	for _, m := range maps {
		entry := unwind.Mapping{
			Start: m.Start, End: m.End,
			Exec: m.Perm&process.PermExec != 0, Write: m.Perm&process.PermWrite != 0,
		}
		name := m.Path + m.Special
		if m.Path != "" && images[name] == nil && m.Offset == 0 {
			images[name] = x.image(m)
		}
		if m.Special == "[vdso]" {
			images[name] = x.vdso(m)
		}
		if im := images[name]; im != nil {
			entry.Image = im
		}
		x.maps = append(x.maps, entry)
	}
}

func (x *target) image(m process.Mapping) unwind.Image {
	x.t.Helper()
	file := x.files[m.Path]
	if file == nil {
		var err error
		if file, err = object.Open(m.Path); err != nil {
			return nil // data
		}
		x.files[m.Path] = file
		x.t.Cleanup(func() {
			if err := file.Close(); err != nil {
				x.t.Error(err)
			}
		})
	}
	return unwind.NewFileImage(file, m.Start-file.BaseAddr())
}

func (x *target) vdso(m process.Mapping) unwind.Image {
	x.t.Helper()
	data := make([]byte, m.Size())
	x.p.ReadUpTo(data, m.Start)
	file, err := object.Parse("[vdso]", data)
	if err != nil {
		x.t.Fatal(err)
	}
	return unwind.NewFileImage(file, m.Start-file.BaseAddr())
}

// symbol returns the address of a symbol of the program.
func (x *target) symbol(name string) uint64 {
	x.t.Helper()
	f, err := elf.Open(x.exe)
	if err != nil {
		x.t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		x.t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Name != name {
			continue
		}
		for _, m := range x.maps {
			if im, ok := m.Image.(*unwind.FileImage); ok && im == x.program() {
				return s.Value + im.Slide()
			}
		}
	}
	x.t.Fatalf("%s has no symbol %s", x.exe, name)
	return 0
}

// program is the image of the program itself.
func (x *target) program() unwind.Image {
	for _, m := range x.maps {
		if im, ok := m.Image.(*unwind.FileImage); ok && im.Name() == x.exe {
			return im
		}
	}
	x.t.Fatalf("%s is not mapped", x.exe)
	return nil
}

// stop stops the main thread, reads registers and stack, and calls more, if any, while
// it is stopped.
func (x *target) stop(more func()) unwind.Snapshot {
	x.t.Helper()
	var s unwind.Snapshot
	err := x.p.EachThread(context.Background(), process.StopOptions{}, []int{x.p.Pid()}, func(t *process.Thread, err error) error {
		if err != nil {
			return err
		}
		regs, err := t.Regs()
		if err != nil {
			return err
		}
		s = x.snapshot(regs)
		if more != nil {
			more()
		}
		return nil
	}, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	return s
}

// snapshot reads the stack that registers point into.
func (x *target) snapshot(r *process.Regs) unwind.Snapshot {
	s := unwind.Snapshot{Regs: registersOf(r), Memory: liveMemory{x.p}, Addr: r.SP() - unwind.Host().RedZone()}
	size := uint64(1 << 16)
	if m, ok := x.maps.Mapping(r.SP()); ok {
		size = min(m.End-s.Addr, 1<<20)
	}
	s.Stack = make([]byte, size)
	s.Stack = s.Stack[:x.p.ReadUpTo(s.Stack, s.Addr)]
	return s
}

func registersOf(r *process.Regs) unwind.Registers {
	var out unwind.Registers
	for k, v := range r.DWARF() {
		out.Set(k, v)
	}
	out.PC = r.PC()
	return out
}

// words reads n 64-bit numbers.
func (x *target) words(addr uint64, n int) []uint64 {
	x.t.Helper()
	buf := make([]byte, 8*n)
	if got := x.p.ReadUpTo(buf, addr); got != len(buf) {
		x.t.Fatalf("read %d of %d bytes at %#x", got, len(buf), addr)
	}
	out := make([]uint64, n)
	for k := range out {
		out[k] = binary.LittleEndian.Uint64(buf[8*k:])
	}
	return out
}

func pcs(frames []unwind.Frame) []uint64 {
	out := make([]uint64, len(frames))
	for k := range frames {
		out[k] = frames[k].PC
	}
	return out
}

func reversed(list []uint64) []uint64 {
	out := slices.Clone(list)
	slices.Reverse(out)
	return out
}
