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
// Gaps are those of the lane, and stand in its first block. With quick=1 the answer comes at once, from what summaries there are;
// where a finer one is to be had without it, the header Callreel-Pixels says up to how many pixels wide merged calls may be.
func (r *recording) view(w http.ResponseWriter, q *query) error {
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	from, to := q.interval()
	width := q.integer("width", 1, 1, maxWidth)
	rows, quick := q.rows(len(tl.Lanes()), width), q.choice("quick", "0", "1") == "1"
	if q.err != nil {
		return q.err
	}
	duration := tl.Duration()
	v, err := tl.View(q.ctx, timeline.Query{From: min(from, duration), To: min(to, duration+1), Width: width, Lanes: rows, Quick: quick})
	if err != nil {
		return err
	}
	body := encodeView(v)
	if v.Coarse {
		w.Header().Set("Callreel-Pixels", strconv.Itoa(v.Pixels))
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
}

func encodeView(v *timeline.View) []byte {
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
	b := viewBuffer(make([]byte, 0, size))
	b.u32(viewMagic)
	b.u32(uint32(len(blocks)))
	for i := range blocks {
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
