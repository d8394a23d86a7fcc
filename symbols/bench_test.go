package symbols

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

// ownProgram builds Go's own compiler, with DWARF, as a program of some size.
func ownProgram(b *testing.B) string {
	path := filepath.Join(b.TempDir(), "compile")
	run(b, "", nil, realtest.Tool(b, realtest.GoTool), "build", "-ldflags=-compressdwarf=false", "-o", path, "cmd/compile")
	return path
}

func BenchmarkBuild(b *testing.B) {
	path := ownProgram(b)
	b.ReportAllocs()
	for b.Loop() {
		im, err := object.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		var out bytes.Buffer
		stats, err := Build(b.Context(), im, &out, BuildOptions{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(stats.DWARF)
		if err := im.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	m := mapOf(b, ownProgram(b), BuildOptions{})
	addrs := functionAddresses(m, 1<<17)
	rand.Shuffle(len(addrs), func(i, k int) { addrs[i], addrs[k] = addrs[k], addrs[i] })
	frames := make([]Frame, 0, 64)
	total := 0
	k := 0
	b.ReportAllocs()
	for b.Loop() {
		frames, _ = m.Lookup(addrs[k], frames[:0])
		total += len(frames)
		if k++; k == len(addrs) {
			k = 0
		}
	}
	b.ReportMetric(float64(total)/float64(b.N), "frames/op")
}

func BenchmarkOpenToFirstAnswer(b *testing.B) {
	source := mapOf(b, ownProgram(b), BuildOptions{})
	addr := functionAddresses(source, 1)[0]
	path := filepath.Join(b.TempDir(), "map"+Extension)
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := source.WriteTo(f); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	var room [64]Frame
	for b.Loop() {
		m, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		if _, reason := m.Lookup(addr, room[:0]); reason != Found {
			b.Fatal(reason)
		}
		if err := m.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
