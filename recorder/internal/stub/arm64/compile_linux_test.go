package arm64

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// program is a program of testdata that was built, and planned.
type program struct {
	path   string
	probes []stub.Probe
}

func buildProgram(t *testing.T, flags ...string) *program {
	t.Helper()
	realtest.Need(t, realtest.Clang, realtest.QEMUARM64)
	clang, err := realtest.Clang.Find()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program")
	args := append([]string{"--target=aarch64-linux-gnu", "-mno-outline-atomics", "-ffreestanding", "-fno-builtin", "-nostdlib", "-static", "-fuse-ld=lld", "-g", "-o", path, "testdata/program.c"}, flags...)
	if msg, err := exec.Command(clang, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	im, err := plan.NewImage(o, "program")
	realtest.NeedThat(t, "plans of arm64 code", err)
	fns, err := im.Plan(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	p := &program{path: path}
	for i := range fns {
		f := &fns[i]
		if !strings.HasPrefix(f.Name, "f") && f.Name != "work" && f.Name != "pairs" {
			continue
		}
		if f.Tier == plan.TierNone {
			t.Errorf("%s is refused: %v at %#x", f.Name, f.Reason, f.At)
			continue
		}
		p.probes = append(p.probes, stub.Probe{Function: f, Image: im, ID: uint32(len(p.probes) + 1)})
	}
	return p
}

// run runs the program with code and patches, or without, and returns what it prints.
func (p *program) run(t *testing.T, cpu string, fds ...*os.File) []string {
	t.Helper()
	qemu, err := realtest.QEMUARM64.Find()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(qemu, "-cpu", cpu, p.path)
	cmd.ExtraFiles = fds
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
	}
	return strings.Fields(out.String())
}

// counts is a sink that counts entries and exits by function.
type counts struct {
	tally
	entries, exits map[uint32]uint64
}

func (k *counts) Append(events []reel.Event) error {
	for _, e := range events {
		if e.IsExit() {
			k.exits[e.ID()]++
		} else {
			k.entries[e.ID()]++
		}
	}
	return k.tally.Append(events)
}

// A program whose functions are all patched computes the same, and each of its calls is recorded.
func TestAPatchedProgramDoesTheSame(t *testing.T) {
	const arena, room = 0x400_0000, 1 << 17
	for _, flags := range []string{"-O2", "-O0", "-O2 -mbranch-protection=standard", "-Os -mbranch-protection=pac-ret+leaf+b-key", "-O3 -march=armv8.5-a+sve"} {
		t.Run(flags, func(t *testing.T) {
			p := buildProgram(t, strings.Fields(flags)...)
			want := p.run(t, "max")
			for _, s := range []stubSetup{{machine: smeMachine}, {machine: sveMachine, lazy: true}, {machine: machine{cpu: "max"}}} {
				m := newTestMemory(t, 256, 0, false, false)
				cfg := stub.Config{TIDOffset: glibcTID, Gate: arena + room, Ring: testRing, HWCap: s.machine.hwcap, HWCap2: s.machine.hwcap2, Lazy: s.lazy}
				code, err := Generator{}.Compile(arena, cfg, p.probes, nil)
				if err != nil {
					t.Fatal(err)
				}
				if bound := (Generator{}).Bound(&cfg, p.probes); uint64(len(code.Bytes)) > bound || bound > room {
					t.Errorf("%d bytes, where there were to be %d at most", len(code.Bytes), bound)
				}
				got := p.run(t, s.machine.cpu, m.file, p.patches(t, code, m, arena, room, strings.Contains(flags, "standard")))
				if !slices.Equal(got, want) {
					t.Fatalf("%v, want %v", got, want)
				}
				checkCounts(t, p, m, got[1:])
				if s.lazy {
					continue
				}
				switchOff(t, p, code)
				m = newTestMemory(t, 16, 0, false, false)
				if got := p.run(t, s.machine.cpu, m.file, p.patches(t, code, m, arena, room, strings.Contains(flags, "standard"))); !slices.Equal(got, want) {
					t.Fatalf("%v with all switched off, want %v", got, want)
				}
				if n := m.header(ring.HdrRegistered); n != 0 {
					t.Error("events are written with all switched off")
				}
			}
		})
	}
}

// switchOff switches off all events, as a recorder does.
func switchOff(t *testing.T, p *program, code *stub.Code) {
	t.Helper()
	for i := range p.probes {
		list, err := code.Switches(i)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) < 2 {
			t.Errorf("%s: %d switches", p.probes[i].Name, len(list))
		}
		for k := range list {
			w := &list[k]
			v := binary.LittleEndian.Uint64(code.Bytes[w.At:])
			if !w.IsOn(v) || w.In(v, true, true) != v || w.IsOn(w.In(v, false, true)) {
				t.Errorf("%s: a switch that is on is %#x, of %+v", p.probes[i].Name, v, *w)
			}
			binary.LittleEndian.PutUint64(code.Bytes[w.At:], w.In(v, false, true))
		}
	}
}

// patches writes what the program reads.
func (p *program) patches(t *testing.T, code *stub.Code, m *testMemory, arena, room uint64, guarded bool) *os.File {
	t.Helper()
	const codeAt = 8 << 16
	bytes := slices.Clone(code.Bytes)
	for _, k := range code.Slots {
		binary.LittleEndian.PutUint64(bytes[k.At:], k.Word)
	}
	var b []byte
	tidOffset := int64(glibcTID)
	for _, v := range []uint64{arena, uint64(len(bytes)), room, testRing, m.size, uint64(tidOffset), uint64(len(code.Patches)), testRing + ring.SlotsOff | GateTag} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	bti := uint64(0)
	if guarded {
		bti = 0x10 << 32
	}
	for _, k := range code.Patches {
		b = binary.LittleEndian.AppendUint64(b, k.Addr)
		b = binary.LittleEndian.AppendUint64(b, uint64(binary.LittleEndian.Uint32(k.New()))|bti)
		if to, is := (Generator{}).JumpOf(&k); !is || to < arena || to >= arena+room {
			t.Errorf("patch at %#x leads to %#x", k.Addr, to)
		}
	}
	b = append(append(b, make([]byte, codeAt-len(b))...), bytes...)
	name := filepath.Join(t.TempDir(), "plan")
	if err := os.WriteFile(name, append(b, make([]byte, 1<<20-len(b))...), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// checkCounts holds the events against what the program has counted.
func checkCounts(t *testing.T, p *program, m *testMemory, called []string) {
	t.Helper()
	k := &counts{tally: tally{maxID: uint32(len(p.probes))}, entries: map[uint32]uint64{}, exits: map[uint32]uint64{}}
	d := ring.NewDrainer(m.mem, func(int, int, string) (ring.Sink, error) { return k, nil })
	if _, err := d.Round(); err != nil {
		t.Fatal(err)
	}
	if err := d.Finish(); err != nil {
		t.Fatal(err)
	}
	if k.unknown != 0 || k.unmatched != 0 || k.abandoned != 0 || len(k.open) != 0 || d.Totals().Dropped != 0 {
		t.Errorf("%d unknown, %d without an entry, %d and %d without an exit, %d dropped", k.unknown, k.unmatched, k.abandoned, len(k.open), d.Totals().Dropped)
	}
	if !maps.Equal(k.entries, k.exits) {
		t.Errorf("entries %v, exits %v", k.entries, k.exits)
	}
	got := map[int]uint64{} // a compiler may make two functions of one
	for i := range p.probes {
		var n int
		if _, err := fmt.Sscanf(p.probes[i].Name, "f%d_", &n); err == nil {
			got[n] += k.entries[p.probes[i].ID]
		}
	}
	for n, calls := range got {
		want, err := strconv.ParseUint(called[n], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		switch n {
		case 1:
			want += 751 // the calls that it doesn't count
		case 12, 13: // counts nothing
			want = 3000
		}
		if calls != want {
			t.Errorf("f%d: %d calls recorded, want %d", n, calls, want)
		}
	}
	if len(got) != 14 {
		t.Errorf("%d functions", len(got))
	}
}
