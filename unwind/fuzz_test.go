package unwind_test

import (
	"encoding/binary"
	"testing"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/unwind"
)

// Where the parts of a fuzzed process are.
const (
	fuzzCode  = 0x400000
	fuzzStack = 0x7f0000000000
	fuzzOther = 0x7e0000000000 // another stack
	fuzzJIT   = 0x500000
)

// fuzzProcess is a process whose CFI, code, stacks and registers are arbitrary bytes.
type fuzzProcess struct {
	table              *cfi.Table
	code, stack, other []byte
}

func (f *fuzzProcess) Slide() uint64 { return fuzzCode }
func (f *fuzzProcess) Entry() uint64 { return 0 }

func (f *fuzzProcess) Row(m *cfi.Machine, pc uint64) (*cfi.Row, bool, error) {
	if f.table == nil {
		return nil, false, nil
	}
	fde, ok := f.table.Find(pc)
	if !ok {
		return nil, false, nil
	}
	row, err := m.RowAt(fde, pc)
	return row, fde.CIE.SignalFrame, err
}

func (f *fuzzProcess) ReadMemory(addr uint64, buf []byte) (int, error) {
	for _, part := range []struct {
		at   uint64
		data []byte
	}{{fuzzCode, f.code}, {fuzzJIT, f.code}, {fuzzStack, f.stack}, {fuzzOther, f.other}} {
		if off := addr - part.at; off < uint64(len(part.data)) {
			return copy(buf, part.data[off:]), nil
		}
	}
	return 0, nil
}

func (f *fuzzProcess) images() unwind.Map {
	size := uint64(len(f.code))
	return unwind.Map{
		{Start: fuzzCode, End: fuzzCode + size, Exec: true, Image: f},
		{Start: fuzzJIT, End: fuzzJIT + size, Exec: true},
		{Start: fuzzOther, End: fuzzOther + uint64(len(f.other)), Write: true},
		{Start: fuzzStack, End: fuzzStack + uint64(len(f.stack)), Write: true},
	}
}

// walkFuzzed walks twice, since a second walk goes by what the first has found out.
func walkFuzzed(t *testing.T, arch *unwind.Arch, f *fuzzProcess, regs []byte) {
	t.Helper()
	s := unwind.Snapshot{Memory: f, Addr: fuzzStack, Stack: f.stack}
	s.Regs.PC = fuzzCode + 16
	for k := 0; len(regs) >= 8 && k < 33; k, regs = k+1, regs[8:] {
		s.Regs.Set(k, binary.LittleEndian.Uint64(regs))
	}
	s.Regs.Set(arch.SP(), fuzzStack+64)
	const most = 1000
	w := unwind.NewWalker(arch, f.images(), unwind.Options{MaxFrames: most})
	first, end := w.Walk(&s, nil)
	again, endAgain := w.Walk(&s, nil)
	if len(first) != len(again) || end.Reason != endAgain.Reason {
		t.Errorf("%d frames and %v, then %d and %v", len(first), end, len(again), endAgain)
	}
	for k := range min(len(first), len(again)) {
		if first[k].PC != again[k].PC || first[k].SP != again[k].SP || first[k].By != again[k].By {
			t.Errorf("frame %d is %+v, then %+v", k, first[k], again[k])
		}
	}
	if len(first) < 1 || len(first) > most {
		t.Errorf("%d frames", len(first))
	}
	if frames, _ := w.WalkFramePointers(&s, nil); len(frames) > most {
		t.Errorf("%d frames by frame pointer", len(frames))
	}
	_ = end.String()
}

// seedCFI is an .eh_frame of one CIE and one FDE: rsp+8 and then rbp-based.
func seedCFI() []byte {
	cie := []byte{0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0}
	fde := []byte{0, 0, 0, 0}
	fde = binary.LittleEndian.AppendUint64(fde, 0)    // start
	fde = binary.LittleEndian.AppendUint64(fde, 4096) // length
	fde = append(fde, 0x41, 0x0e, 16, 0x86, 2, 0x41, 0x0d, 6, 0x50, 0x10, 3, 2, 0x77, 8, 0x0f, 3, 0x77, 16, 6, 0)
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(cie)))
	out = append(out, cie...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(fde)))
	binary.LittleEndian.PutUint32(fde, uint32(len(out)))
	return append(out, fde...)
}

func FuzzWalk(f *testing.F) {
	stack := make([]byte, 512)
	for k := 0; k+8 <= len(stack); k += 8 {
		binary.LittleEndian.PutUint64(stack[k:], fuzzCode+uint64(k/8))
	}
	chain := make([]byte, 512)
	for k := 64; k+16 <= len(chain); k += 32 {
		binary.LittleEndian.PutUint64(chain[k:], fuzzStack+uint64(k)+32)
		binary.LittleEndian.PutUint64(chain[k+8:], fuzzJIT+5)
	}
	regs := make([]byte, 16*8)
	binary.LittleEndian.PutUint64(regs[6*8:], fuzzStack+64)
	calls := make([]byte, 64)
	for k := range calls {
		calls[k] = []byte{0xe8, 0, 0, 0, 0, 0x5d, 0xc3, 0x90}[k%8]
	}
	f.Add(uint8(0), seedCFI(), calls, stack, chain, regs)
	f.Add(uint8(0), []byte{}, calls, chain, stack, regs)
	f.Add(uint8(0), []byte{}, []byte{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05, 0xc9, 0xc3}, stack, chain, regs)
	f.Add(uint8(1), seedCFI(), calls, stack, chain, regs)
	link := append(append([]byte(nil), regs...), make([]byte, 17*8)...)
	binary.LittleEndian.PutUint64(link[30*8:], fuzzCode+16)
	f.Add(uint8(1), []byte{}, stackOf(0xd65f03c094000001, 0x94000001b4000040, 0xa8c17bfd9100043f, 0xd65f03c0910003bf), chain, stack, link)
	f.Add(uint8(2), seedCFI(), calls, stack, chain, regs)
	f.Fuzz(func(t *testing.T, which uint8, frame, code, stack, other, regs []byte) {
		const most = 1 << 14
		if len(frame) > most || len(code) > most || len(stack) > most || len(other) > most || len(code) == 0 {
			return
		}
		arch := []*unwind.Arch{unwind.AMD64, unwind.ARM64, unwind.I386}[which%3]
		p := &fuzzProcess{code: code, stack: stack, other: other}
		p.table, _ = cfi.ParseEHFrame(frame, 0, cfi.Options{}) // options make sense
		walkFuzzed(t, arch, p, regs)
	})
}
