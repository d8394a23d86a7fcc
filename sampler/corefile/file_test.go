package corefile_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/sampler/corefile"
	"github.com/callreel/callreel/unwind"
)

// core returns a core of a small process, as gdb writes it.
func core(t testing.TB) []byte {
	t.Helper()
	realtest.Need(t, realtest.GCC, realtest.GDB, realtest.LivePtrace)
	p := realtest.Start(t, realtest.Build(t, "handlers", "-static"), "threads")
	defer p.Finish()
	path := filepath.Join(t.TempDir(), "core")
	out, err := exec.Command("gdb", "-nx", "-batch", "-p", strconv.Itoa(p.Pid()), "-ex", "generate-core-file "+path).CombinedOutput()
	if err != nil {
		t.Fatalf("gdb: %v\n%s", err, out)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCoreHasThreadsRegistersMappingsAndMemory(t *testing.T) {
	data := core(t)
	f, err := corefile.Parse("core", data)
	if err != nil {
		t.Fatal(err)
	}
	arch := map[string]*unwind.Arch{"amd64": unwind.AMD64, "arm64": unwind.ARM64}[runtime.GOARCH]
	if len(f.Threads) != 4 || f.Arch != arch || len(f.Problems()) > 0 {
		t.Errorf("%d threads of %v, problems %v", len(f.Threads), f.Arch, f.Problems())
	}
	oracle, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	loads := 0
	for _, p := range oracle.Progs {
		if p.Type != elf.PT_LOAD || p.Memsz == 0 {
			continue
		}
		loads++
		m := f.Mapping(p.Vaddr)
		if m == nil || m.End != p.Vaddr+p.Memsz || m.Size != p.Filesz || m.Exec != (p.Flags&elf.PF_X != 0) || m.Write != (p.Flags&elf.PF_W != 0) {
			t.Errorf("segment %+v is mapping %+v", p.ProgHeader, m)
			continue
		}
		want := make([]byte, min(p.Filesz, 64))
		if _, err := p.ReadAt(want, 0); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		if n, _ := f.ReadMemory(p.Vaddr, got); n != len(want) || !bytes.Equal(got, want) {
			t.Errorf("memory at %#x: %d bytes %x, want %x", p.Vaddr, n, got, want)
		}
	}
	if loads == 0 || len(f.Maps) < loads {
		t.Errorf("%d mappings of %d segments", len(f.Maps), loads)
	}
	for _, th := range f.Threads {
		sp, _ := th.Regs.Get(arch.SP())
		if m := f.Mapping(sp); m == nil || !m.Write {
			t.Errorf("thread %d: the stack pointer %#x is in no stack", th.TID, sp)
		}
		if m := f.Mapping(th.Regs.PC); m == nil || !m.Exec {
			t.Errorf("thread %d: the program counter %#x is not in code", th.TID, th.Regs.PC)
		}
	}
	named := 0
	for _, m := range f.Maps {
		if filepath.IsAbs(m.Path) {
			named++
		}
	}
	if named == 0 || f.Auxv.VDSO == 0 || f.Auxv.Entry != entryOf(t, f) || f.Process.PID == 0 || f.Process.Name == "" {
		t.Errorf("%d mappings have files, auxiliary vector %+v, process %+v", named, f.Auxv, f.Process)
	}
}

// entryOf is the entry point of the program that the core names.
func entryOf(t *testing.T, f *corefile.File) uint64 {
	t.Helper()
	for _, m := range f.Maps {
		if m.Path == "" || m.Offset != 0 {
			continue
		}
		program, err := elf.Open(m.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer program.Close()
		return program.Entry
	}
	t.Fatal("no mapping has a file")
	return 0
}

func TestFileOfAnotherKindIsNoCore(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("not ELF\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := []string{text}
	if runtime.GOOS == "linux" {
		files = append(files, program)
	}
	for _, path := range files {
		if _, err := corefile.Open(path); !errors.Is(err, corefile.ErrNotCore) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := corefile.Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestCutOffCoreGivesWhatPrecedesTheCut(t *testing.T) {
	data := smallCore(elf.EM_X86_64, elf.ELFCLASS64) // kernels write the notes first, as this has them
	whole, err := corefile.Parse("core", data)
	if err != nil {
		t.Fatal(err)
	}
	opened := 0
	for cut := range data {
		f, err := corefile.Parse("core", data[:cut:cut])
		if err != nil {
			continue
		}
		opened++
		if len(f.Threads) != 1 || f.Threads[0].Regs != whole.Threads[0].Regs {
			t.Errorf("cut at %d: threads %+v", cut, f.Threads)
		}
		if len(f.Problems()) == 0 {
			t.Errorf("cut at %d of %d: nothing is said of it", cut, len(data))
		}
	}
	if opened < 64 {
		t.Errorf("only %d of %d cut cores could be opened", opened, len(data))
	}
}

func TestDamagedCoreIsRefusedOrReadWithinItsBounds(t *testing.T) {
	for _, machine := range []elf.Machine{elf.EM_X86_64, elf.EM_AARCH64} {
		data := smallCore(machine, elf.ELFCLASS64)
		for at := range data {
			for _, with := range []byte{data[at] ^ 1<<(at%8), 0xff, 0x80, 0} {
				damaged := bytes.Clone(data)
				damaged[at] = with
				readAll(damaged)
			}
		}
	}
}

// readAll reads all there is.
func readAll(data []byte) {
	f, err := corefile.Parse("core", data)
	if err != nil {
		return
	}
	var buf [16]byte
	for _, m := range f.Maps {
		_, _ = f.ReadMemory(m.Start, buf[:])
		_, _ = f.ReadMemory(m.End-8, buf[:])
	}
	_ = f.Problems()
}

// smallCore is a core of one thread and one page, as a seed.
func smallCore(machine elf.Machine, class elf.Class) []byte {
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) } // a bytes.Buffer takes every write
	note := func(kind uint32, desc []byte) []byte {
		out := binary.LittleEndian.AppendUint32(nil, 5)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(desc)))
		out = binary.LittleEndian.AppendUint32(out, kind)
		out = append(out, "CORE\x00\x00\x00\x00"...)
		return append(out, desc...)
	}
	files := binary.LittleEndian.AppendUint64(nil, 1)
	for _, v := range []uint64{4096, 0x400000, 0x401000, 0} {
		files = binary.LittleEndian.AppendUint64(files, v)
	}
	notes := note(1, make([]byte, 392))
	notes = append(notes, note(3, make([]byte, 136))...)
	notes = append(notes, note(6, make([]byte, 32))...)
	notes = append(notes, note(0x46494c45, append(files, "/bin/true\x00\x00\x00"...))...)
	h := elf.Header64{Type: uint16(elf.ET_CORE), Machine: uint16(machine), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 2}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(class), byte(elf.ELFDATA2LSB), 1
	put(h)
	at := uint64(64 + 2*56)
	put(elf.Prog64{Type: uint32(elf.PT_NOTE), Off: at, Filesz: uint64(len(notes))})
	put(elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: 5, Off: at + uint64(len(notes)), Vaddr: 0x400000, Filesz: 64, Memsz: 4096})
	b.Write(notes)
	b.Write(make([]byte, 64))
	return b.Bytes()
}

func FuzzParse(f *testing.F) {
	f.Add(smallCore(elf.EM_X86_64, elf.ELFCLASS64))
	f.Add(smallCore(elf.EM_AARCH64, elf.ELFCLASS64))
	f.Add(smallCore(elf.EM_386, elf.ELFCLASS32))
	f.Fuzz(func(_ *testing.T, data []byte) { readAll(data) })
}

func TestSmallCoresOfOtherArchitecturesAreRead(t *testing.T) {
	for machine, arch := range map[elf.Machine]*unwind.Arch{elf.EM_X86_64: unwind.AMD64, elf.EM_AARCH64: unwind.ARM64} {
		f, err := corefile.Parse("core", smallCore(machine, elf.ELFCLASS64))
		if err != nil {
			t.Fatal(err)
		}
		if f.Arch != arch || len(f.Threads) != 1 || len(f.Maps) != 1 || f.Maps[0].Path != "/bin/true" || len(f.Problems()) > 0 {
			t.Errorf("%v: %d threads, mappings %+v, problems %v", f.Arch, len(f.Threads), f.Maps, f.Problems())
		}
	}
	if _, err := corefile.Parse("core", smallCore(elf.EM_S390, elf.ELFCLASS64)); !errors.Is(err, corefile.ErrArch) {
		t.Errorf("%v", err)
	}
}
