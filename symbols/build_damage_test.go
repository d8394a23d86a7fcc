package symbols

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// objectFile is a small relocatable file with DWARF.
func objectFile(t testing.TB, by realtest.Capability, flags ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, nil, append([]string{realtest.Tool(t, by), "-O2", "-g", "-c", "-o", "a.o", source(t, "calls.c")}, flags...)...)
	data, err := os.ReadFile(filepath.Join(dir, "a.o"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// buildAnd builds the map of a file that may be damaged, and looks into it.
func buildAnd(t testing.TB, data []byte) {
	t.Helper()
	im, err := object.Parse("damaged", data)
	if err != nil {
		return
	}
	var out bytes.Buffer
	if _, err := Build(t.Context(), im, &out, BuildOptions{Workers: 1}); err != nil {
		return
	}
	m, err := Parse("damaged", out.Bytes())
	if err != nil {
		t.Fatalf("what was built cannot be opened: %v", err)
	}
	frames := make([]Frame, 0, maxNodes)
	for _, addr := range functionAddresses(m, 50) {
		var reason Reason
		if frames, reason = m.Lookup(addr, frames[:0]); reason != Found {
			t.Fatalf("%#x in a function: %v", addr, reason)
		}
	}
}

func TestDamagedFilesGiveAMapOrAnError(t *testing.T) {
	data := objectFile(t, realtest.GCC)
	random := rand.New(rand.NewPCG(3, 3))
	for n := 0; n < len(data); n += 1 + len(data)/200 {
		buildAnd(t, data[:n])
	}
	for range 400 {
		damaged := bytes.Clone(data)
		for range 1 + random.IntN(4) {
			damaged[random.IntN(len(damaged))] ^= 1 << random.IntN(8)
		}
		buildAnd(t, damaged)
	}
}

func FuzzBuild(f *testing.F) {
	f.Add(objectFile(f, realtest.GCC))
	f.Add(objectFile(f, realtest.GCC, "-gdwarf-2"))
	f.Fuzz(func(t *testing.T, data []byte) { buildAnd(t, data) })
}

func TestBuildStopsWithItsContext(t *testing.T) {
	im, err := object.Parse("a.o", objectFile(t, realtest.GCC))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Build(ctx, im, io.Discard, BuildOptions{}); err == nil {
		t.Error("no error")
	}
}

// failing is a writer that takes some bytes and then fails.
type failing struct{ left int }

func (f *failing) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, os.ErrClosed
	}
	return len(b), nil
}

func TestErrorsOfTheWriterAreReported(t *testing.T) {
	im, err := object.Parse("a.o", objectFile(t, realtest.GCC))
	if err != nil {
		t.Fatal(err)
	}
	stats, err := Build(t.Context(), im, io.Discard, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []int64{0, 100, stats.Bytes - 1} {
		if _, err := Build(t.Context(), im, &failing{int(left)}, BuildOptions{}); err == nil {
			t.Errorf("no error after %d of %d bytes", left, stats.Bytes)
		}
	}
	if stats.Functions == 0 {
		t.Error("no functions")
	}
}

func TestProgressEndsAtTheWhole(t *testing.T) {
	im := image(t, compile(t, realtest.GCC, "calls.c", "-g", "-static"))
	var last, total int64
	stats, err := Build(t.Context(), im, io.Discard, BuildOptions{Workers: 1, Progress: func(done, all int64) {
		if done <= last {
			t.Errorf("%d after %d", done, last)
		}
		last, total = done, all
	}})
	if err != nil {
		t.Fatal(err)
	}
	if last == 0 || last != total || total != stats.DWARF {
		t.Errorf("ended at %d of %d, %d read", last, total, stats.DWARF)
	}
}
