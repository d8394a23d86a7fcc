package hostile

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
)

// spent runs everything that names a process's functions.
func spent(t *testing.T, pid int) {
	t.Helper()
	id := strconv.Itoa(pid)
	folder := t.TempDir()
	reel := filepath.Join(folder, "x.reel")
	for _, args := range [][]string{
		{"functions", "-p", id, "-m", "hostile*"},
		{"record", "-p", id, "-m", "hostile*", "-d", "300ms", "-o", reel},
		{"record", "-p", id, "-m", "hostile*", "-d", "300ms", "--args", "*hostile_leaf", "-o", filepath.Join(folder, "args.reel")},
		{"report", reel},
		{"report", reel, "--json"},
		{"report", reel, "--locks"},
		{"why", reel, "-f", "waits_at_the_pipe"},
		{"why", reel, "-f", "waits_at_the_pipe", "--markdown"},
		{"export", reel, "--format", "folded", "-o", filepath.Join(folder, "folded")},
		{"export", reel, "--format", "perfetto", "-o", filepath.Join(folder, "perfetto")},
		{"diff", reel, reel},
		{"top", "-p", id, "-m", "hostile*", "--once", "--interval", "200ms"},
		{"stacks", "-p", id},
		{"sample", "-p", id, "-d", "200ms", "--format", "folded", "-o", filepath.Join(folder, "sampled")},
		{"stall", "-p", id, "--over", "50ms", "-d", "300ms"},
		{"doctor", "-p", id},
	} {
		r := callreel(t, args...)
		t.Logf("%s: code %d, %d MiB, %v", args[0], r.Code, r.memory>>20, r.took)
		if r.Code != 0 {
			t.Logf("%.300s", r.Stderr)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

// A name that a terminal would obey: colours, the window's title, a bell, a new line, C1, and text that runs backwards.
const escapes = "\x1b[31m\x1b]0;x\x07\n\r\xc2\x9b1m\xe2\x80\xae\x7f"

func TestNamesAreEscapeSequences(t *testing.T) {
	u := realtest.NewUser(t, 0)
	program, err := os.ReadFile(target(t, "hostile_names"))
	if err != nil {
		t.Fatal(err)
	}
	was := "name_of_a_function_that_is_replaced"
	name := (escapes + strings.Repeat("x", len(was)))[:len(was)]
	if !bytes.Contains(program, []byte(was)) {
		t.Fatal("no such name")
	}
	path := filepath.Join(u.Folder, "hostile\x1b[31m\n\x1b]0;x\x07")
	if err := os.WriteFile(path, bytes.ReplaceAll(program, []byte(was), []byte(name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(u.Folder, "fifo\x1b[31m\n\x1b]0;x\x07\xe2\x80\xae")
	if err := unix.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := u.Command(path, "\x1b[2J\x1b]0;argument\x07", fifo)
	p := realtest.StartCommand(t, cmd)
	p.WaitLine("ready")
	spent(t, p.Pid())
	p.Wait()
}

// Of a pack expansion of a pack of n types, which are functions of all others.
func TestNameTakesADemanglerForEver(t *testing.T) {
	u := realtest.NewUser(t, 0)
	name := "_Z1fIJ" + strings.Repeat("i", 16000) + "EEvDpT_"
	realtest.Need(t, realtest.LivePtrace)
	p := u.Start(realtest.Build(t, "hostile_names", "-static", `-DEXPONENTIAL="`+name+`"`))
	spent(t, p.Pid())
	p.Wait()
}

func TestFunctionIsSparseAndHuge(t *testing.T) {
	u := realtest.NewUser(t, 0)
	p := u.Start(realtest.Build(t, "hostile_sparse"))
	spent(t, p.Pid())
	intact(t, p.Pid())
	p.Wait()
}

// withSection returns a copy of a program that has another section.
func withSection(t *testing.T, program, name string, data []byte) string {
	t.Helper()
	realtest.Need(t, realtest.Objcopy)
	file, out := filepath.Join(t.TempDir(), "section"), filepath.Join(t.TempDir(), "hostile_section")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command("objcopy", "--remove-section", name, "--add-section", name+"="+file, program, out).CombinedOutput(); err != nil {
		t.Fatalf("objcopy: %v\n%s", err, said)
	}
	return out
}

// zeros is a compressed section (ELF gABI, Elf64_Chdr) of so many zeros.
func zeros(t *testing.T, size int64) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, v := range []uint64{uint64(elf.COMPRESS_ZLIB), uint64(size), 1} {
		b.Write(binary.LittleEndian.AppendUint64(nil, v))
	}
	w := zlib.NewWriter(&b)
	block := make([]byte, 1<<20)
	for n := int64(0); n < size; n += int64(len(block)) {
		if _, err := w.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// markCompressed sets SHF_COMPRESSED for sections of a program.
func markCompressed(t *testing.T, path string, names ...string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	const flags, headerSize = 8, 64 // of Elf64_Shdr
	table := binary.LittleEndian.Uint64(data[0x28:])
	for i, s := range f.Sections {
		if slices.Contains(names, s.Name) {
			data[table+uint64(i)*headerSize+flags+1] |= byte(elf.SHF_COMPRESSED >> 8)
		}
	}
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestDebugSectionsAreABomb(t *testing.T) {
	u := realtest.NewUser(t, 0)
	program, data := target(t, "hostile_names"), zeros(t, 512<<20)
	names := []string{".debug_info", ".debug_abbrev", ".debug_line", ".debug_str"}
	for _, name := range names {
		program = withSection(t, program, name, data)
	}
	markCompressed(t, program, names...)
	p := u.Start(program)
	spent(t, p.Pid())
	p.Wait()
}

func TestSymbolsAreABomb(t *testing.T) {
	u := realtest.NewUser(t, 0)
	piece := filepath.Join(t.TempDir(), "zeros")
	if err := os.WriteFile(piece, make([]byte, 64<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	packed, err := exec.Command("xz", "-c", piece).Output()
	if err != nil {
		t.Fatal(err)
	}
	stripped := filepath.Join(t.TempDir(), "hostile_stripped")
	if said, err := exec.Command("objcopy", "--strip-all", target(t, "hostile_names"), stripped).CombinedOutput(); err != nil {
		t.Fatalf("objcopy: %v\n%s", err, said)
	}
	p := u.Start(withSection(t, stripped, ".gnu_debugdata", bytes.Repeat(packed, 32)))
	spent(t, p.Pid())
	p.Wait()
}

// library makes a library that belongs to the user, and returns where.
func library(t *testing.T, u *realtest.User) string {
	t.Helper()
	path := filepath.Join(u.Folder, "libhostile.so")
	data, err := os.ReadFile(realtest.Build(t, "hostile_library", "-shared", "-fPIC"))
	if err == nil {
		err = os.WriteFile(path, data, 0o755)
	}
	if err == nil {
		err = os.Chown(path, int(u.ID), int(u.ID))
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLibraryIsTruncatedWhileItIsRead(t *testing.T) {
	u := realtest.NewUser(t, 0)
	realtest.Need(t, realtest.LivePtrace)
	program := realtest.Build(t, "hostile_truncated")
	p := u.Start(program, library(t, u), "always")
	for i := range races(t) {
		id := strconv.Itoa(p.Pid())
		for _, args := range [][]string{
			{"record", "-p", id, "-m", "*hostile*", "-d", "10ms", "-o", filepath.Join(t.TempDir(), fmt.Sprint(i, ".reel"))},
			{"functions", "-p", id, "-m", "*hostile*"},
			{"stacks", "-p", id},
		} {
			callreel(t, args...)
			if t.Failed() {
				t.Fatalf("try %d", i)
			}
		}
	}
	p.Wait()
}

func TestLibraryIsTruncatedWhileItIsRecorded(t *testing.T) {
	u := realtest.NewUser(t, 0)
	realtest.Need(t, realtest.LivePtrace)
	p := u.Start(realtest.Build(t, "hostile_truncated"), library(t, u), "once")
	reel := filepath.Join(t.TempDir(), "x.reel")
	r := start(t, "record", "-p", strconv.Itoa(p.Pid()), "-m", "*hostile*", "-o", reel)
	if !r.on(t, reel) {
		r.wait(t)
		t.Fatal("not recorded")
	}
	p.Go()
	p.WaitLine("truncated")
	r.interrupt()
	out := r.wait(t)
	t.Logf("code %d: %s", out.Code, out.Stderr)
	if remains, err := realtest.RemainsIn(p.Pid()); err != nil || len(remains) > 0 {
		t.Errorf("left in the process: %v, %v", remains, err)
	}
	p.Wait()
}

// A program says that it is another one, by that one's build ID.
func TestBuildIDIsAnothers(t *testing.T) {
	u := realtest.NewUser(t, 0)
	honest, program := target(t, "hostile_victim"), target(t, "hostile_names")
	f, err := elf.Open(honest)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	note := f.Section(".note.gnu.build-id")
	if note == nil {
		t.Skip("the compiler gives no build ID")
	}
	id, err := note.Data()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	copy(data[mine.Section(".note.gnu.build-id").Offset:], id)
	data = bytes.ReplaceAll(data, []byte("hostile_work"), []byte("forged_names"))
	data = bytes.ReplaceAll(data, []byte("hostile_leaf"), []byte("forged_leaf_"))
	path := filepath.Join(t.TempDir(), "hostile_id")
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	forger := u.Start(path)
	for range 3 {
		callreel(t, "stacks", "-p", strconv.Itoa(forger.Pid()))
	}
	forger.Wait()
	p := realtest.Start(t, honest)
	for range 20 {
		r := callreel(t, "stacks", "-p", strconv.Itoa(p.Pid()))
		if strings.Contains(r.Stdout, "forged") || strings.Contains(r.Stdout, "escaping_name") {
			t.Fatalf("another's names:\n%s", r.Stdout)
		}
	}
	p.Finish()
}
