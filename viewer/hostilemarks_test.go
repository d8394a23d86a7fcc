package viewer

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/markindex"
)

// most is how large an answer about marks may be, whatever the reel has in it, for the screens that these tests ask for.
const most = 12 << 20

// within asks for a good answer of a bounded size.
func (c *client) within(request string) []byte {
	c.t.Helper()
	b := c.bytes(request)
	if len(b) > most {
		c.t.Errorf("%.60s: %d bytes", request, len(b))
	}
	return b
}

func TestHostileMarksAreAnsweredWithinBounds(t *testing.T) {
	const last = math.MaxUint64 >> 2
	for name, fill := range map[string]func(m *madereel.Marks, o *madereel.Marks){
		"titles that are no text": func(m, _ *madereel.Marks) {
			for i, s := range []string{"<script>alert(1)</script>", "\x1b[2J", "\xff\xfe", "\u202egnp", "nul\x00", strings.Repeat("x", 60_000), "", "__proto__"} {
				at := uint64(2000 + 100*i)
				m.At(at, madereel.MarkBegin, madereel.Text(s)).At(at+8, madereel.MarkNote, madereel.Text(s)).At(at+50, madereel.MarkEnd)
			}
		},
		"100,000 titles": func(m, _ *madereel.Marks) {
			for i := range uint64(100_000) {
				m.At(2000+20*i, madereel.MarkBegin, madereel.Text(fmt.Sprintf("title %d", i))).At(2010+20*i, madereel.MarkEnd)
			}
		},
		"spans that never end, 4,096 deep and more": func(m, _ *madereel.Marks) {
			for i := range uint64(10_000) {
				m.At(2000+20*i, madereel.MarkBegin, madereel.Text("deep"))
			}
		},
		"ends of nothing": func(m, o *madereel.Marks) {
			for i := range uint64(10_000) {
				m.At(2000+20*i, madereel.MarkRequestDone, madereel.Number(i))
				o.At(2000+20*i, madereel.MarkJobEnd, madereel.Number(i)).At(2004+20*i, madereel.MarkReceive, madereel.Number(i))
			}
		},
		"asynchronous spans that are all open": func(m, _ *madereel.Marks) {
			for i := range uint64(20_000) {
				m.At(2000+20*i, madereel.MarkJob, madereel.Number(i)).At(2008+20*i, madereel.MarkJobStep, madereel.Number(i))
			}
		},
		"times at the end of their range": func(m, o *madereel.Marks) {
			m.At(last-10, madereel.MarkBegin, madereel.Text("late")).At(last, madereel.MarkEnd).At(last, madereel.MarkTick).At(last, madereel.MarkQueue, madereel.Number(math.MaxUint64))
			o.At(1, madereel.MarkBegin, madereel.Text("early")).At(last, madereel.MarkEnd).At(last, madereel.MarkJob, madereel.Number(1))
		},
		"numbers that are none": func(m, _ *madereel.Marks) {
			for i, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, 5e-324, 0} {
				m.At(2000+uint64(10*i), madereel.MarkLoad, madereel.Number(math.Float64bits(v)))
			}
		},
		"all at the same time": func(m, o *madereel.Marks) {
			for i := range uint64(5000) {
				m.At(2000, madereel.MarkBegin, madereel.Text("same")).At(2000, madereel.MarkTick).At(2000, madereel.MarkQueue, madereel.Number(i)).At(2000, madereel.MarkSend, madereel.Number(i)).At(2000, madereel.MarkEnd)
				o.At(2000, madereel.MarkReceive, madereel.Number(i)).At(2000, madereel.MarkJob, madereel.Number(i)).At(2000, madereel.MarkJobEnd, madereel.Number(i))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := madeReel(t, []string{"work"}, func(w *reel.Writer) {
				madereel.AddMarkers(t, w)
				var m, o madereel.Marks
				fill(&m, &o)
				m.Write(t, thread(t, w, "first", reel.Entry(1000, 0x10000, 1), reel.Exit(3000, 0x10000, 1)))
				o.Write(t, thread(t, w, "second"))
			})
			c := serveReels(t, path)
			m := c.marked()
			spans := ""
			for _, l := range m.Lanes {
				if l[1] > markindex.MaxRows {
					t.Errorf("lane %d has %d rows", l[0], l[1])
				}
				spans += fmt.Sprintf(",%d:0:%d", l[0], l[1])
			}
			for _, k := range m.Tracks {
				spans += fmt.Sprintf(",%d:0:%d", k.ID, k.Rows)
			}
			duration := ask[infoAnswer](c, "info").Reels[0].DurationNS
			for _, to := range []uint64{duration, min(duration, 500_000), 2000} {
				to = min(to, maxTime)
				decodeMarks(t, c.within(fmt.Sprintf("view?from=0&to=%d&width=1800&lanes=0:0:1&spans=%s", to, strings.TrimPrefix(spans, ","))))
			}
			for _, request := range []string{"marks", "findmarks?q=*&limit=5000", "marktable", "flows?limit=3000", "nextmark?q=*&kind=before&at=0", "mark?kind=span&lane=0&row=0&at=1500&near=1000000", "mark?kind=span&lane=0&row=23&at=200000"} {
				if b := c.within(request); !json.Valid(b) {
					t.Errorf("%s: %.200s", request, b)
				}
			}
			c.answersAll(0)
		})
	}
}

func TestManyCountersAndAsynchronousTitlesShareWhatThereIs(t *testing.T) {
	path := madeReel(t, []string{"work"}, func(w *reel.Writer) {
		named := func(kind reel.MarkKind) reel.Marker {
			m := reel.Marker{Provider: "p", Name: "m", Kind: kind, TitleArg: 0, IDArg: 1, ValueArg: 1, Arguments: []reel.Argument{{Name: "title", Kind: reel.ArgumentString}, {Name: "n", Kind: reel.ArgumentInt}}}
			return m
		}
		_, err := w.AddMarkers([]reel.Marker{named(reel.MarkCounter), named(reel.MarkAsyncBegin), named(reel.MarkAsyncEnd)})
		realtest.Must(t, err)
		var m madereel.Marks
		for i := range uint64(3000) {
			title := madereel.Text(fmt.Sprintf("t%d", i))
			m.At(2000+100*i, 1, title, madereel.Number(i)).At(2010+100*i, 2, title, madereel.Number(i)).At(2050+100*i, 3, title, madereel.Number(i))
		}
		m.Write(t, thread(t, w, "main"))
	})
	c := serveReels(t, path)
	m := c.marked()
	if len(m.Tracks) != 256+256+1 || m.Left != 3000-256 {
		t.Errorf("%d tracks, %d left", len(m.Tracks), m.Left)
	}
	if k := m.Tracks[len(m.Tracks)-1]; k.Name != reel.OtherTitles || k.Count != 3000-256 {
		t.Errorf("%+v", k)
	}
	if f := ask[struct{ Matches int }](c, "findmarks?q=t299*"); f.Matches != 11 {
		t.Errorf("%d titles are found", f.Matches)
	}
}

func TestDamagedMarksAreAnswered(t *testing.T) {
	whole, err := os.ReadFile(markReel(t))
	realtest.Must(t, err)
	rng := rand.New(rand.NewPCG(7, 19))
	for i := range 40 {
		data := append([]byte(nil), whole...)
		for range 1 + rng.IntN(12) {
			data[rng.IntN(len(data))] = byte(rng.Uint32())
		}
		if i%4 == 0 {
			data = data[:rng.IntN(len(data))]
		}
		path := filepath.Join(t.TempDir(), "damaged.reel")
		realtest.Must(t, os.WriteFile(path, data, 0o600))
		s, err := New(Options{Paths: []string{path}})
		if err != nil {
			continue
		}
		realtest.Must(t, s.Close())
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			c := serveReels(t, path)
			until(c, "info", func(i infoAnswer) bool { return i.Build.Progress == 1 })
			c.answersAll(0)
		})
	}
}

func TestGoroutinesHaveTheirSpans(t *testing.T) {
	path := filepath.Join(t.TempDir(), "go.reel")
	w := madereel.Create(t, path, reel.Header{PID: 77, Clock: madereel.Nanoseconds(1000), Goroutines: true}, reel.Image{Path: "/bin/prog", ID: "c0ffee"}, "main.work")
	madereel.AddMarkers(t, w)
	a, b := thread(t, w, "a"), thread(t, w, "b")
	one, two := madereel.Marks{Goroutine: 5}, madereel.Marks{Goroutine: 5}
	one.At(2000, madereel.MarkRequest, madereel.Text("/"), madereel.Number(1)).At(2500, madereel.MarkTick)
	two.At(3000, madereel.MarkNote, madereel.Text("elsewhere")).At(4000, madereel.MarkRequestDone, madereel.Number(3)) // on another thread
	one.Write(t, a)
	two.Write(t, b)
	realtest.Must(t, w.Close())
	c := serveReels(t, path)
	m := c.marked()
	var track *trackJSON
	for i := range m.Tracks {
		if m.Tracks[i].Kind == "spans" {
			track = &m.Tracks[i]
		}
	}
	if track == nil || track.Name != "goroutine 5" || track.Rows != 1 || track.Instants != 2 {
		t.Fatalf("%+v", m)
	}
	x := ask[*markJSON](c, fmt.Sprintf("mark?kind=span&lane=%d&row=0&at=2000", track.ID))
	if x == nil || x.Name != "request" || len(x.Arguments) != 2 || len(x.Results) != 1 || x.Results[0].Value != "3" {
		t.Errorf("%+v", x)
	}
	if x := ask[*markJSON](c, fmt.Sprintf("mark?kind=instant&lane=%d&at=2000", track.ID)); x == nil || len(x.Arguments) != 1 {
		t.Errorf("%+v", x)
	}
}
