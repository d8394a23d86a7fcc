package viewer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// manyMarks writes a reel of eight threads with so many marks: spans five deep, asynchronous ones, flows, counters and instants.
func manyMarks(t testing.TB, path string, marks int) {
	w := newReel(t, path, []string{"work"})
	madereel.AddMarkers(t, w)
	const threads = 8
	for k := range threads {
		rng := rand.New(rand.NewPCG(3, uint64(k)))
		tw := thread(t, w, fmt.Sprintf("worker %d", k), reel.Entry(1500, 0x10000, 1))
		at, depth := uint64(2000), 0
		titles := make([]reel.Value, 200)
		for i := range titles {
			titles[i] = madereel.Text(fmt.Sprintf("step %d", i))
		}
		var list madereel.Marks
		for n := 0; n < marks/threads; n++ {
			at += uint64(rng.ExpFloat64() * math.Exp(3+4*rng.Float64()))
			id := uint64(k)<<32 | uint64(n/20)
			switch x := n % 20; {
			case x == 0:
				list.At(at, madereel.MarkJob, madereel.Number(id))
			case x == 13:
				list.At(at, madereel.MarkJobEnd, madereel.Number(id))
			case x == 1:
				list.At(at, madereel.MarkSend, madereel.Number(id))
			case x == 14:
				list.At(at, madereel.MarkReceive, madereel.Number(id))
			case x == 5 || x == 15:
				list.At(at, madereel.MarkQueue, madereel.Number(uint64(rng.IntN(1000))))
			case x == 7 || x == 17:
				list.At(at, madereel.MarkTick)
			case depth > 0 && (depth >= 5 || rng.IntN(2) == 0):
				depth--
				list.At(at, madereel.MarkEnd)
			default:
				depth++
				list.At(at, madereel.MarkBegin, titles[rng.IntN(len(titles))])
			}
			if len(list.List) >= 1<<13 {
				list.Write(t, tw)
				list.List = list.List[:0]
			}
		}
		list.Write(t, tw)
		realtest.Must(t, tw.Append([]reel.Event{reel.Exit(at, 0x10000, 1)}))
	}
	realtest.Must(t, w.Close())
}

// BenchmarkMarks says how long answers take of ten million marks, and how much memory a mark.
func BenchmarkMarks(b *testing.B) {
	const marks = 10_000_000
	path := filepath.Join(b.TempDir(), "many.reel")
	manyMarks(b, path, marks)
	info, err := os.Stat(path)
	realtest.Must(b, err)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	c := serveReels(b, path)
	m := c.marked()
	took := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(took.Seconds(), "s/index")
	b.ReportMetric(float64(c.reels[0].marks.Load().x.Bytes())/marks, "B/mark")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/marks, "heapB/mark")
	b.ReportMetric(float64(info.Size())/marks, "fileB/mark")
	spans := ""
	for _, l := range m.Lanes {
		spans += fmt.Sprintf(",%d:0:%d", l[0], l[1])
	}
	for _, t := range m.Tracks {
		spans += fmt.Sprintf(",%d:0:%d", t.ID, t.Rows)
	}
	duration := ask[infoAnswer](c, "info").Reels[0].DurationNS
	for _, part := range []uint64{1, 10, 1000, 100_000, 10_000_000} {
		from := duration / 3
		if part == 1 {
			from = 0
		}
		request := fmt.Sprintf("view?width=1800&lanes=0:0:1&spans=%s&from=%d&to=%d", spans[1:], from, from+duration/part)
		c.took(b, fmt.Sprintf("1/%d", part), request)
	}
	c.took(b, "one", fmt.Sprintf("mark?kind=span&lane=0&row=0&near=100000&at=%d", duration/2))
	c.took(b, "table", "marktable?")
	c.took(b, "next", "nextmark?q=step+77&kind=after&at=1000")
	c.took(b, "nothing", "nextmark?q=nothing&kind=after&at=1000")
	c.took(b, "flows", fmt.Sprintf("flows?from=%d&to=%d", duration/3, duration/2))
	for range b.N { // what is measured is above
	}
}

// took reports the median time of a request.
func (c *client) took(b *testing.B, name, request string) {
	var times []time.Duration
	size := 0
	for range 15 {
		began := time.Now()
		size = len(c.bytes(request))
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	b.Logf("%-12s %8.2f ms, worst %8.2f, %d bytes", name, float64(times[7])/1e6, float64(times[14])/1e6, size)
}
