package crash

import (
	"context"
	"slices"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols/symbolize"
	"github.com/callreel/callreel/unwind"
)

const (
	// maxFrames bounds the frames of all threads together.
	maxFrames = 1 << 18
	// leastFrames are each thread's, however many the others have.
	leastFrames = 32
	// maxRounds bounds how often a scan goes on where a walk ended, for one thread.
	maxRounds = 256
	// maxScanned bounds the words that are scanned for all threads together.
	maxScanned = 1 << 24
	// maxFetched bounds how often a walk begins again because an image came from the network.
	maxFetched = 64
)

// walking walks the stacks of one report.
type walking struct {
	report  *Report
	files   *files
	images  unwind.Map
	walker  *unwind.Walker
	short   *unwind.Walker // for the threads beyond maxFrames
	frames  int            // left for all threads
	scanned int            // words left
}

// walkAll walks all threads whose registers are known.
func (r *Report) walkAll(ctx context.Context, f *files) error {
	if r.arch == nil || r.memory == nil {
		for _, t := range r.Threads {
			t.fromReport(r)
		}
		return nil
	}
	r.walked = true
	w := &walking{report: r, files: f, frames: maxFrames, scanned: maxScanned}
	w.lay()
	for _, t := range r.Threads {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if t.regs == nil {
			t.fromReport(r)
			if len(t.Frames) == 0 {
				t.End, t.EndSays = "no-registers", "its registers are not in the report"
			}
			continue
		}
		frames, end := w.thread(t.regs)
		for tries := 0; tries < maxFetched && w.fetchNext(ctx, frames); tries++ {
			frames, end = w.thread(t.regs)
		}
		t.keep(r, frames, end)
		w.frames -= len(frames)
	}
	return nil
}

// fetchNext fetches the first image of a stack that is not at hand and was not asked for. When
// one came, what is mapped where is laid out again.
func (w *walking) fetchNext(ctx context.Context, frames []walked) bool {
	for k := range frames {
		im := w.report.image(frames[k].CodeAddr())
		if im == nil || im.file != nil || im.asked {
			continue
		}
		if w.files.fetch(ctx, im); im.file != nil {
			w.lay()
			return true
		}
	}
	return false
}

// walked is a frame of a walk, and how it was found where not by that.
type walked struct {
	unwind.Frame
	by   By
	rule string
}

// thread walks one stack: by package unwind as far as that comes, and then from the next thing on
// the stack that looks like a return address.
func (w *walking) thread(regs *unwind.Registers) ([]walked, unwind.End) {
	most := min(w.files.MaxFrames, max(w.frames, leastFrames))
	var out []walked
	var part []unwind.Frame
	next := unwind.Snapshot{Regs: *regs, Memory: w, Frozen: true}
	a := w.report.arch
	by, rule := By(""), ""
	if lr, ok := w.linkRegister(regs); ok {
		sp, _ := regs.Get(a.SP())
		out = append(out, walked{unwind.Frame{PC: regs.PC, SP: sp, Flags: unwind.Exact}, ByContext, ""})
		next.Regs.PC, next.Return = lr, true
		by, rule = ByContext, "link-register"
	}
	for round := 0; ; round++ {
		if sp, ok := next.Regs.Get(a.SP()); ok {
			next.Addr = sp - min(sp, a.RedZone())
			next.Stack = w.bytes(next.Addr, 64<<10)
		}
		var end unwind.End
		walker := w.walker
		if most == leastFrames {
			walker = w.short
		}
		part, end = walker.Walk(&next, part[:0])
		for k, f := range part {
			if k > 0 {
				by, rule = "", ""
			}
			out = append(out, walked{f, by, rule})
		}
		if len(out) > most {
			return out[:most], unwind.End{Reason: unwind.TooDeep, Addr: out[most-1].SP}
		}
		if end.Complete() && !w.unsure(out) || end.Reason == unwind.TooDeep || round == maxRounds || len(out) == most {
			return out, end
		}
		fp, hasFP := next.Regs.Get(a.FP())
		if !w.scan(&next, out[len(out)-1], fp, hasFP) {
			return out, end
		}
		by, rule = ByScan, "scan"
	}
}

// unsure says whether a stack that seems to be whole ends with code that isn't at hand, and that no
// chain of frame pointers has led to: that code may have no frame pointer at all.
func (w *walking) unsure(frames []walked) bool {
	last := &frames[len(frames)-1]
	im := w.report.image(last.CodeAddr())
	return last.By != unwind.ByFramePointer && last.By != unwind.ByCFI && im != nil && im.file == nil && last.PC != 0
}

// linkRegister returns the caller of a thread that stands in an image which isn't at hand, where
// the return address is still in the register: it leads to another image. One into the same
// image may be left from a call that is over.
func (w *walking) linkRegister(regs *unwind.Registers) (uint64, bool) {
	if w.report.arch != unwind.ARM64 {
		return 0, false
	}
	const number = 30
	lr, ok := regs.Get(number)
	lr &= w.report.strip()
	at, to := w.report.image(regs.PC), w.report.image(lr-1)
	return lr, ok && at != nil && at.file == nil && to != nil && to != at && w.looksLikeReturn(lr, 0)
}

// bytes returns what there is of memory from an address on.
func (w *walking) bytes(addr uint64, most int) []byte {
	buf := make([]byte, most)
	n, _ := w.report.memory.ReadMemory(addr, buf)
	return slices.Clip(buf[:n])
}

// ReadMemory implements unwind.Memory: what the report holds, and the code of images that are at
// hand, which reports mostly leave out.
func (w *walking) ReadMemory(addr uint64, buf []byte) (int, error) {
	done := 0
	for done < len(buf) {
		at := addr + uint64(done)
		n, _ := w.report.memory.ReadMemory(at, buf[done:])
		if n == 0 {
			n = copy(buf[done:], w.report.fileBytes(at, uint64(len(buf)-done)))
		}
		if n == 0 {
			break
		}
		done += n
	}
	return done, nil
}

// fileBytes returns bytes of the file that is mapped at an address, if the process could not
// write there.
func (r *Report) fileBytes(addr, most uint64) []byte {
	im := r.image(addr)
	if im == nil || im.file == nil {
		return nil
	}
	link := addr - im.slide
	for _, s := range im.file.Segments() {
		if s.Type != object.SegmentLoad || s.Perm&object.PermW != 0 || link < s.Addr || link-s.Addr >= s.FileSize {
			continue
		}
		b, err := im.file.ReadAddr(link, min(most, s.FileSize-(link-s.Addr)))
		if err != nil {
			return nil // as of memory that nobody has
		}
		return b
	}
	return nil
}

// keep makes a thread's frames of a walk's.
func (t *Thread) keep(r *Report, frames []walked, end unwind.End) {
	t.End = end.Reason.String()
	if !end.Complete() {
		t.EndSays = end.String()
	}
	t.Frames = make([]Frame, len(frames))
	for k := range frames {
		f := &frames[k]
		t.Frames[k] = Frame{
			Address: f.PC, Image: r.image(f.CodeAddr()), SP: f.SP, By: byOf(f), Exact: f.Has(unwind.Exact), Signal: f.Has(unwind.SignalFrame),
		}
		if t.Frames[k].Rule = f.rule; f.by == "" {
			t.Frames[k].Rule = f.By.String()
		}
	}
}

func byOf(f *walked) By {
	switch {
	case f.by != "":
		return f.by
	case f.By == unwind.ByLeaf || f.By == unwind.ByCode:
		return ByScan
	case f.By == unwind.ByCFI:
		return ByCFI
	case f.By == unwind.ByFramePointer:
		return ByFramePointer
	}
	return ByContext // the thread's, or those that the kernel saved for a signal
}

// fromReport takes over the stack that the report itself has.
func (t *Thread) fromReport(r *Report) {
	if len(t.raw) > maxRaw {
		t.raw = t.raw[:maxRaw]
		t.EndSays = "the report has more frames than are read"
	}
	t.End = "report"
	t.Frames = make([]Frame, len(t.raw))
	inside := t.stack // of calls: behind the first frame that isn't inlined into the next
	for k := range t.raw {
		raw := &t.raw[k]
		f := Frame{
			Address: raw.addr, By: ByReport, Inlined: raw.inlined, Function: raw.function, File: raw.file, Line: raw.line,
			Exact: raw.kind == symbolize.Exact || raw.kind == symbolize.Auto && !inside,
			Said:  raw.function != "",
		}
		if f.Image = raw.image; f.Image == nil {
			if f.Image = r.image(raw.addr); f.Image == nil {
				f.Image = r.unlistedImage(raw)
			}
		}
		inside = inside || !raw.inlined
		t.Frames[k] = f
	}
}

// maxRaw bounds the frames of a stack that a report has.
const maxRaw = 1 << 18

// unlistedImage stands for an image that a frame names and the report doesn't list. Nothing but
// its name is known.
func (r *Report) unlistedImage(f *rawFrame) *Image {
	if f.module == "" {
		return nil
	}
	im := r.unlisted[f.module]
	if im == nil {
		if im = (&Image{Path: f.module, Load: f.base, Why: "the report doesn't list it"}); len(r.unlisted) >= maxImages {
			return im
		}
		if r.unlisted == nil {
			r.unlisted = map[string]*Image{}
		}
		r.unlisted[f.module] = im
	}
	return im
}
