package viewer

import (
	"encoding/binary"
	"math"
	"net/http"
	"strconv"

	"github.com/callreel/callreel/reel/timeline"
)

// viewMagic begins an answer of api/view: "CLVW" in the order of its bytes.
const viewMagic = 0x57564c43

// view is api/view: the bars of a part of the screen, little-endian and with all arrays aligned to 8 bytes:
//
//	u32 magic, u32 blocks, and for each block
//	u32 lane, u32 row, u32 bars, u32 gaps
//	f64 start[bars], f64 duration[bars], f64 busy[bars]            nanoseconds
//	u32 func[bars], u32 calls[bars], u32 flags[bars]               each padded to 8 bytes
//	f64 gapStart[gaps], f64 gapEnd[gaps], f64 gapEvents[gaps]
//
// Gaps are those of the lane, and stand in its first block. With states=1 a lane of which they are known has a block of row 0xffffffff
// more, whose bars are stretches of its states:
//
//	f64 start[bars], f64 duration[bars]                            nanoseconds
//	u32 shares[bars], u32 faults[bars]                             each padded to 8 bytes
//
// shares are four bytes, the lowest first: how much of the stretch the thread was on a processor, ready, blocked, and blocked in state D, 255
// being all of it. faults has the page faults in its lower half that needed no input, above those that did, 65535 being that many or more.
//
// With spans=LANE:FIRST:COUNT,… the answer also has rows of what the program said, which are of lanes or of tracks (see api/marks). Spans have
// blocks as bars, whose rows are 0x80000000 and more, and whose func is a title; steps of asynchronous spans have rows of 0xc0000000 and
// more, instants that of 0xfffffffe. A counter has one of row 0xfffffffd:
//
//	f64 start[bars], f64 min[bars], f64 max[bars], f64 last[bars]  nanoseconds, values
//	u32 values[bars]                                               padded to 8 bytes
//
// No answer waits for the states of a large reel to be summed up: those of lanes that aren't are left out, and the header Callreel-States is
// there. The states of api/info say when they are.
//
// With quick=1 the answer comes at once, from what summaries there are;
// where a finer one is to be had without it, the header Callreel-Pixels says up to how many pixels wide merged calls may be.
func (r *recording) view(w http.ResponseWriter, q *query) error {
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	from, to := q.interval()
	width := q.integer("width", 1, 1, maxWidth)
	rows, quick := q.rows(len(tl.Lanes()), width), q.choice("quick", "0", "1") == "1"
	states := q.choice("states", "0", "1") == "1"
	marks := r.marks.Load()
	spans := q.spans(marks, width)
	if q.err != nil {
		return q.err
	}
	duration := tl.Duration()
	v, err := tl.View(q.ctx, timeline.Query{From: min(from, duration), To: min(to, duration+1), Width: width, Lanes: rows, Quick: quick, States: states, Summed: !r.summed.Load()})
	if err != nil {
		return err
	}
	defer r.hasSeen()
	body := encodeView(v, marks.blocks(tl, spans, min(from, duration), min(to, duration+1), width))
	if v.Coarse {
		w.Header().Set("Callreel-Pixels", strconv.Itoa(v.Pixels))
	}
	if v.Unsummed {
		w.Header().Set("Callreel-States", "unsummed")
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, err = w.Write(body)
	return err
}

// viewBlock is a block of the answer.
type viewBlock struct {
	lane uint32
	row  int
	bars []timeline.Bar
	gaps []timeline.Gap
	// Of a block of states:
	states []timeline.StateSpan
	// Of a counter's:
	columns []columnBlock
}

// stateRow is the row of blocks of states.
const stateRow = math.MaxUint32

func encodeView(v *timeline.View, marks []viewBlock) []byte {
	gaps := map[uint32][]timeline.Gap{}
	for _, g := range v.Gaps {
		gaps[g.Lane] = g.Gaps
	}
	blocks := make([]viewBlock, 0, len(v.Rows))
	size := 8
	add := func(b viewBlock) {
		b.gaps = gaps[b.lane]
		delete(gaps, b.lane)
		size += 16 + 24*len(b.bars) + 3*4*(len(b.bars)+len(b.bars)&1) + 24*len(b.gaps)
		blocks = append(blocks, b)
	}
	for i := range v.Rows {
		add(viewBlock{lane: v.Rows[i].Lane, row: v.Rows[i].Row, bars: v.Rows[i].Bars})
	}
	for _, g := range v.Gaps { // of lanes that show nothing else
		if len(gaps[g.Lane]) > 0 {
			add(viewBlock{lane: g.Lane})
		}
	}
	for i := range v.States {
		list := v.States[i].Spans
		size += 16 + 16*len(list) + 2*4*(len(list)+len(list)&1)
		blocks = append(blocks, viewBlock{lane: v.States[i].Lane, row: stateRow, states: list})
	}
	for i := range marks {
		k := &marks[i]
		size += 16 + 24*len(k.bars) + 3*4*(len(k.bars)+len(k.bars)&1) + 32*len(k.columns) + 4*(len(k.columns)+len(k.columns)&1)
	}
	blocks = append(blocks, marks...)
	b := viewBuffer(make([]byte, 0, size))
	b.u32(viewMagic)
	b.u32(uint32(len(blocks)))
	for i := range blocks {
		if blocks[i].row == stateRow {
			b.states(&blocks[i])
			continue
		}
		if blocks[i].row == counterRow {
			b.counter(&blocks[i])
			continue
		}
		b.block(&blocks[i])
	}
	return b
}

// viewBuffer is an answer being written.
type viewBuffer []byte

func (b *viewBuffer) u32(v uint32) { *b = binary.LittleEndian.AppendUint32(*b, v) }

func (b *viewBuffer) f64(v uint64) {
	*b = binary.LittleEndian.AppendUint64(*b, math.Float64bits(float64(v)))
}

func (b *viewBuffer) pad() {
	if len(*b)%8 != 0 {
		b.u32(0)
	}
}

func (b *viewBuffer) block(k *viewBlock) {
	b.u32(k.lane)
	b.u32(uint32(k.row))
	b.u32(uint32(len(k.bars)))
	b.u32(uint32(len(k.gaps)))
	for i := range k.bars {
		b.f64(k.bars[i].Start)
	}
	for i := range k.bars {
		b.f64(k.bars[i].Duration)
	}
	for i := range k.bars {
		b.f64(k.bars[i].Busy)
	}
	for i := range k.bars {
		b.u32(k.bars[i].Func)
	}
	b.pad()
	for i := range k.bars {
		b.u32(k.bars[i].Calls)
	}
	b.pad()
	for i := range k.bars {
		b.u32(uint32(k.bars[i].Flags))
	}
	b.pad()
	for i := range k.gaps {
		b.f64(k.gaps[i].Start)
	}
	for i := range k.gaps {
		b.f64(k.gaps[i].End)
	}
	for i := range k.gaps {
		b.f64(k.gaps[i].Events)
	}
}

func (b *viewBuffer) states(k *viewBlock) {
	b.u32(k.lane)
	b.u32(stateRow)
	b.u32(uint32(len(k.states)))
	b.u32(0)
	for i := range k.states {
		b.f64(k.states[i].Start)
	}
	for i := range k.states {
		b.f64(k.states[i].Duration)
	}
	for i := range k.states {
		x := &k.states[i]
		b.u32(shareOf(x.Running, x) | shareOf(x.Ready, x)<<8 | shareOf(x.Blocked, x)<<16 | shareOf(x.Uninterruptible, x)<<24)
	}
	b.pad()
	for i := range k.states {
		const most = math.MaxUint16
		b.u32(min(k.states[i].Minor, most) | min(k.states[i].Major, most)<<16)
	}
	b.pad()
}

// shareOf is how much of a stretch a time is: 255 if it is all of it, and not 0 if it is something.
func shareOf(ns uint64, x *timeline.StateSpan) uint32 {
	switch {
	case ns >= x.Duration: // a pixel may be shorter than a nanosecond
		return 255 * uint32(min(ns, 1))
	case ns == 0:
		return 0
	}
	return max(1, uint32(float64(ns)/float64(x.Duration)*255))
}
