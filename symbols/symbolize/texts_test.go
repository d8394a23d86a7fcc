package symbolize

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
)

// mapOnly is a Source of one map.
type mapOnly struct {
	m     *symbols.Map
	texts *Texts
}

func (s mapOnly) Module(context.Context, *Image) (*Module, error) {
	return &Module{Map: s.m, Base: s.m.BaseAddr(), Texts: s.texts}, nil
}

// TestKeptTextsChangeNoAnswer compares answers by kept texts with those without, for return addresses around the bounds of all
// functions of a program that has glibc in it, with its trampoline.
func TestKeptTextsChangeNoAnswer(t *testing.T) {
	path := compile(t, realtest.GCC, "prog.c", source, "-g", "-O1", "-static")
	im, err := object.Open(path)
	realtest.Must(t, err)
	defer im.Close()
	m, _, err := symbols.BuildMap(t.Context(), im, symbols.BuildOptions{})
	realtest.Must(t, err)
	defer m.Close()
	var capture strings.Builder
	fmt.Fprintf(&capture, `{"images":[{"id":"abcd","load":"%#x","size":0}],"threads":[`, m.BaseAddr())
	trampolines, stacks := 0, 0
	m.Functions(func(start, end uint64, name string) bool {
		if isTrampoline(name) {
			trampolines++
		}
		if got := m.FunctionAt(start); got != name {
			t.Errorf("%#x: in %q, want %q", start, got, name)
		}
		if stacks++; stacks > 1 {
			capture.WriteByte(',')
		}
		fmt.Fprintf(&capture, `{"frames":[{"address":"%#x"},{"address":"%#x"},{"address":"%#x"},{"address":"%#x"},{"address":"%#x"},{"address":"%#x"}]}`,
			start, start-1, start, start+1, (start+end)/2, end)
		return true
	})
	capture.WriteString("]}")
	if trampolines == 0 && runtime.GOARCH != "arm64" || stacks < 500 { // where signal handlers return to the vdso
		t.Fatalf("%d functions, %d trampolines", stacks, trampolines)
	}
	var want bytes.Buffer
	realtest.Must(t, JSON(t.Context(), strings.NewReader(capture.String()), &want, mapOnly{m, nil}))
	for _, limit := range []int64{0, 10_000, 1 << 30} {
		texts := NewTexts(limit)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				var got bytes.Buffer
				if err := JSONBytes(t.Context(), []byte(capture.String()), &got, mapOnly{m, texts}); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
					t.Errorf("limit %d: %d bytes, want %d, %v", limit, got.Len(), want.Len(), err)
				}
			})
		}
		wg.Wait()
		if size := texts.Size(); size > limit+2*(1<<chunkBits) {
			t.Errorf("limit %d: %d bytes are kept", limit, size)
		}
		texts.Forget()
		if size := texts.Size(); size != 0 {
			t.Errorf("%d bytes after forgetting", size)
		}
	}
}
