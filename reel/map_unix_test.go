//go:build unix

package reel

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

func TestFileCutShortWhileOpenIsAnErrorNotACrash(t *testing.T) {
	w, name := create(t, testHeader)
	tw := addThread(t, w, Thread{TID: 1})
	realtest.Must(t, tw.Append(newProgram(1, 50).run(200_000)))
	realtest.Must(t, w.Close())
	f := open(t, name)
	realtest.Must(t, os.Truncate(name, 100))
	_, err := f.Decode(f.Chunks(1)[0], nil)
	if err == nil || !strings.Contains(err.Error(), "became shorter") {
		t.Errorf("decoding from a file that was cut short: %v", err)
	}
}

func TestFilesThatWereLetGoOfAreReadAgain(t *testing.T) {
	w, name := create(t, testHeader)
	tw := addThread(t, w, Thread{TID: 1})
	realtest.Must(t, tw.Append(newProgram(1, 50).run(200_000)))
	realtest.Must(t, w.Close())
	f := open(t, name)
	before, err := f.Decode(f.Chunks(1)[0], nil)
	realtest.Must(t, err)
	f.Forget()
	after, err := f.Decode(f.Chunks(1)[0], nil)
	realtest.Must(t, err)
	if len(before) == 0 || !slices.Equal(before, after) {
		t.Errorf("%d events, and %d then", len(before), len(after))
	}
}
