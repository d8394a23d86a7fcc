package crash

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
	"github.com/callreel/callreel/symbols/symbolize"
)

// machCore puts a Mach-O core together: segments with what they hold, and one arm64 thread.
type machPart struct {
	addr uint64
	prot uint32
	data []byte
}

func machCore(pc, sp, fp, lr uint64, parts ...machPart) []byte {
	var commands, body []byte
	thread := le.AppendUint32(nil, machThread)
	const words = 68 // ARM_THREAD_STATE64
	thread = le.AppendUint32(thread, 8+8+4*words)
	thread = le.AppendUint32(le.AppendUint32(thread, machStateARM64), words)
	state := make([]byte, 4*words)
	le.PutUint64(state[8*29:], fp)
	le.PutUint64(state[8*30:], lr)
	le.PutUint64(state[8*31:], sp)
	le.PutUint64(state[8*32:], pc)
	commands = append(thread, state...)
	at := uint64(machHeaderSize + len(commands) + 72*len(parts))
	for _, p := range parts {
		c := make([]byte, 72)
		le.PutUint32(c, machSegment64)
		le.PutUint32(c[4:], 72)
		le.PutUint64(c[24:], p.addr)
		le.PutUint64(c[32:], uint64(len(p.data)))
		le.PutUint64(c[40:], at)
		le.PutUint64(c[48:], uint64(len(p.data)))
		le.PutUint32(c[60:], p.prot)
		commands, body, at = append(commands, c...), append(body, p.data...), at+uint64(len(p.data))
	}
	h := make([]byte, machHeaderSize)
	le.PutUint32(h, machMagic64)
	le.PutUint32(h[4:], machCPUARM64)
	le.PutUint32(h[12:], machTypeCore)
	le.PutUint32(h[16:], uint32(1+len(parts)))
	le.PutUint32(h[20:], uint32(len(commands)))
	return append(append(h, commands...), body...)
}

func smallMachOCore() []byte {
	return machCore(0x1000, 0x2000, 0x2000, 0, machPart{0x1000, 5, make([]byte, 64)}, machPart{0x2000, 3, make([]byte, 64)})
}

// A library made for macOS is put into a core at a slide, with a stack of two calls whose return
// addresses are signed, as arm64e's are.
func TestMachOCoreHasItsImagesByUUIDAndIsWalked(t *testing.T) {
	realtest.Need(t, realtest.Clang, realtest.LD64)
	dir := t.TempDir()
	source, unlinked, program := filepath.Join(dir, "prog.c"), filepath.Join(dir, "prog.o"), filepath.Join(dir, "libprog.dylib")
	const text = "void leaf(void);\n__attribute__((noinline)) void inner(int n) { leaf(); leaf(); }\n" +
		"__attribute__((noinline)) void outer(int n) { inner(n); leaf(); }\nvoid begin(void) { outer(1); leaf(); }\n" +
		"__attribute__((noinline)) void leaf(void) { __asm__ volatile(\"\"); }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{
		{"clang-19", "-target", "arm64-apple-macos11", "-O1", "-fno-omit-frame-pointer", "-funwind-tables", "-ffreestanding", "-c", source, "-o", unlinked},
		{"ld64.lld-19", "-dylib", "-arch", "arm64", "-platform_version", "macos", "11", "11", "-install_name", "/usr/lib/libprog.dylib", "-o", program, unlinked},
	} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", c, err, out)
		}
	}
	im, err := object.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	list, err := im.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]uint64{}
	for _, s := range list {
		at[strings.TrimPrefix(s.Name, "_")] = s.Addr
	}
	const slide, stack, signature = 0x4000000, 0x16f000000, 0xab5a8 << 44
	callIn := func(name string) uint64 { // the first call in a function
		for a := at[name]; a < at[name]+256; a += 4 {
			code, err := im.ReadAddr(a, 4)
			if err != nil {
				t.Fatal(err)
			}
			if le.Uint32(code)>>26 == 0x25 {
				return a + 4 + slide
			}
		}
		t.Fatalf("%s calls nothing", name)
		return 0
	}
	var code machPart
	for _, s := range im.Segments() {
		if s.Name == "__TEXT" {
			data, err := im.Bytes(s.Off, s.FileSize)
			if err != nil {
				t.Fatal(err)
			}
			code = machPart{s.Addr + slide, 5, data}
		}
	}
	frames := make([]byte, 256)
	le.PutUint64(frames[32:], stack+64)
	le.PutUint64(frames[40:], callIn("outer")|signature)
	le.PutUint64(frames[64:], 0)
	le.PutUint64(frames[72:], callIn("begin")|signature)
	core := machCore(callIn("inner"), stack, stack+32, 0, code, machPart{stack, 3, frames})
	r, err := Read("core", bytes.NewReader(core), int64(len(core)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	files := &symbolize.Files{Finder: &symbols.Finder{DebugDirs: []string{dir}}}
	defer files.Close()
	if len(r.Images) != 1 || r.Images[0].ID != im.ID() || r.Images[0].Load != im.BaseAddr()+slide {
		t.Fatalf("images are %+v, want the UUID %s", r.Images, im.ID())
	}
	if err := r.Resolve(context.Background(), Options{Symbols: files, DebugDirs: []string{dir}}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range r.Threads[0].Frames {
		names = append(names, f.Function)
	}
	if got := strings.Join(names, " "); !strings.HasPrefix(got, "inner outer begin") {
		t.Errorf("the stack is %v (%v): %+v", got, r.Threads[0].EndSays, r.Threads[0].Frames)
	}
}
