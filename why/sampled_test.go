package why

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/reel"
)

// largeCalls is a reel in small chunks with calls of a hundred thousand others: three phases, and in the slow one a wait, a long call and
// twice as many comparisons.
func largeCalls(t *testing.T, p *program) *reel.File {
	r := madereel.NewRun(baseTick)
	for i := range 6 {
		slow := i == 4
		r.Call(fnHandle, func() {
			r.Call(fnParse, func() {
				for range 15_000 {
					r.Call(fnRead, func() { r.Work(p.about(1 * µs)) })
				}
			})
			for range 10 {
				r.Call(fnLookup, func() {
					for k := range 2000 {
						r.Call(fnCompare, func() { r.Work(p.about(2 * µs)) })
						if slow {
							r.Call(fnCompare, func() { r.Work(p.about(2 * µs)) })
						}
						if k == 700 {
							r.Call(fnRender, func() { r.Work(500 * µs) })
						}
					}
				})
			}
			if slow {
				r.Call(fnLock, func() { r.Wait(60*ms, 0) })
				r.Call(fnRotate, func() { r.Work(90 * ms) })
			}
		})
		r.Wait(1*ms, reel.WakerKernel)
	}
	tw, err := p.w.Thread(reel.Thread{TID: 101, Process: 100, Name: "worker-1"})
	for part := range slices.Chunk(r.Events, 1000) {
		if err == nil {
			err = tw.Append(part)
		}
		if err == nil {
			err = tw.Flush()
		}
	}
	if err == nil && p.states {
		err = tw.Sched(r.Sched)
		p.w.SchedKnown(r.Now)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p.open()
}

// A call of which only pieces are read comes out as it does if all of it is, nearly.
func TestSampledTrees(t *testing.T) {
	for _, withStates := range []bool{true, false} {
		f := largeCalls(t, newProgram(t, withStates))
		x := &explainer{f: f, o: Options{Match: isHandle, Slowest: 6}, threads: map[uint32]reel.Thread{}, names: map[uint32]string{}, hasStates: f.HasStates()}
		list, err := x.choose(context.Background())
		if err != nil || len(list) != 6 {
			t.Fatal(list, err)
		}
		full := replay(context.Background(), f, list, replayed{limit: peerNodes}, 2)
		few := x.sampling(list, 6*15_000)
		if few == nil {
			t.Fatal("all of it is read")
		}
		got := replay(context.Background(), f, list, replayed{limit: peerNodes, sampling: few}, 2)
		for i := range full {
			if got[i].part == 0 || got[i].part > 0.7 {
				t.Errorf("%.0f %% of call %d was read", 100*got[i].part, i)
			}
			if a, b := full[i].total(), got[i].total(); a != b {
				t.Errorf("call %d: %v, want %v", i, b, a)
			}
			whole := float64(list[i].duration())
			want, has := byPath(full[i]), byPath(got[i])
			for path, n := range want {
				m := has[path]
				for s := range n.self {
					if off := math.Abs(float64(n.self[s]) - float64(m.self[s])); off > 0.04*whole {
						t.Errorf("call %d: %v in state %d: %d, want %d", i, path, s, m.self[s], n.self[s])
					}
				}
				if off := math.Abs(float64(n.calls) - float64(m.calls)); off > max(0.15*float64(n.calls), 10) {
					t.Errorf("call %d: %v: %d calls, want %d", i, path, m.calls, n.calls)
				}
				if off := math.Abs(float64(n.whole) - float64(m.whole)); off > 0.06*whole {
					t.Errorf("call %d: %v: %d in all, want %d", i, path, m.whole, n.whole)
				}
			}
			if i == 0 && withStates && (!slices.ContainsFunc(got[i].spans, func(s stretch) bool { return s.To-s.From > 59*ms })) {
				t.Errorf("the wait isn't told: %+v", got[i].spans)
			}
		}
	}
}

func byPath(t *tree) map[[4]uint32]node {
	all := map[[4]uint32]node{}
	for _, n := range t.nodes {
		var path [4]uint32
		for at, k := n, 0; k < len(path); k++ {
			path[k] = at.fn
			if at.parent < 0 {
				break
			}
			at = t.nodes[at.parent]
		}
		all[path] = n
	}
	return all
}

func TestMarksAreThinned(t *testing.T) {
	var p reel.Pairer
	for depth := range uint32(2000) {
		p.Push([]reel.Event{reel.Entry(uint64(depth+1), 0x7fff0000-16*depth, 1)})
	}
	m := &marks{}
	for chunk := range 1000 {
		m.note(chunk, &p)
	}
	if m.open > maxMarked || len(m.at) < 12 || m.at[len(m.at)-1] < 900 || !slices.IsSorted(m.at) || len(m.at) != len(m.state) {
		t.Errorf("%d calls, chunks %v", m.open, m.at)
	}
	for i, at := range m.at {
		if at != i*m.every {
			t.Errorf("mark %d is at %d, every %d", i, at, m.every)
		}
	}
}
