package timeline

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/bigreel"
	"github.com/callreel/callreel/reel"
)

// A Pairer that goes on from a piece is where one is that has read all before it.
func TestPiecesGoOnWhereTheOnesBeforeEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "big.reel")
	if err := bigreel.Write(path, bigreel.Shape{Events: 2_000_000, Threads: 2, Depth: 12, Seed: 7}); err != nil {
		t.Fatal(err)
	}
	f, err := reel.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tl, err := Open(context.Background(), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range tl.Lanes() {
		var p reel.Pairer
		f.ReadyPairer(&p, l.Thread)
		p.SetTime(f.FirstTick())
		pieces, events := tl.Pieces(l.ID), uint64(0)
		if len(pieces) < 5 {
			t.Fatalf("%d pieces", len(pieces))
		}
		next := 0
		for i, x := range pieces {
			if x.Chunk != next || x.Chunks < 1 {
				t.Fatalf("piece %d is of %d chunks from %d on, want %d", i, x.Chunks, x.Chunk, next)
			}
			want := p.State(nil)
			got, ok := tl.PieceState(l.ID, i)
			if !ok || got.Current != want.Current || got.Now != want.Now && i > 0 || len(got.Stacks) != len(want.Stacks) {
				t.Fatalf("piece %d: %v %+v, want %+v", i, ok, got, want)
			}
			for s := range want.Stacks {
				if len(got.Stacks[s].Open) != len(want.Stacks[s].Open) {
					t.Fatalf("piece %d: %d calls are open, want %d", i, len(got.Stacks[s].Open), len(want.Stacks[s].Open))
				}
				for k, o := range want.Stacks[s].Open {
					if g := got.Stacks[s].Open[k]; g.Func != o.Func || g.SP != o.SP || g.Start != o.Start {
						t.Errorf("piece %d: %+v is open, want %+v", i, g, o)
					}
				}
			}
			for ; next < x.Chunk+x.Chunks; next++ {
				c := f.Chunks(l.Thread)[next]
				list, err := f.Decode(c, nil)
				if err != nil {
					t.Fatal(err)
				}
				if next == x.Chunk && list[0].Time != x.Start {
					t.Errorf("piece %d starts at %d, want %d", i, x.Start, list[0].Time)
				}
				events += uint64(len(list))
				p.Push(list)
				if next == x.Chunk+x.Chunks-1 && list[len(list)-1].Time != x.End {
					t.Errorf("piece %d ends at %d, want %d", i, x.End, list[len(list)-1].Time)
				}
			}
		}
		if next != len(f.Chunks(l.Thread)) {
			t.Errorf("%d of %d chunks are in pieces", next, len(f.Chunks(l.Thread)))
		}
		for _, x := range pieces {
			events -= x.Events
		}
		if events != 0 {
			t.Errorf("pieces have %d events too few", int64(events))
		}
	}
	if _, ok := tl.PieceState(99, 0); ok || tl.Pieces(99) != nil {
		t.Error("there are pieces of no lane")
	}
}
