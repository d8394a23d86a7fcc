package symbolize

import (
	"context"
	"fmt"
	"strings"

	"github.com/callreel/callreel/symbols"
)

// reasonNoImage is why an address outside of all images has no name.
const reasonNoImage = "no image at this address"

// A Map answers link addresses, as *symbols.Map does: the frames at addr are appended,
// innermost first; when there are none, the reason says why.
type Map interface {
	Lookup(addr uint64, frames []symbols.Frame) ([]symbols.Frame, symbols.Reason)
}

// A Module is what is known of one image's file.
type Module struct {
	Map      Map
	Base     uint64      // link address of the image's first byte
	Segments []FileRange // of the file that are loaded; nil when the file is not at hand

	// Thumb says that bit 0 of a code address is the instruction set, not a part of it
	// (ARM).
	Thumb bool

	// Texts keeps what JSON says of the map's names, for all Symbolizers; nil for nothing kept.
	Texts *Texts

	// Signals says whether code is the trampoline that a signal's handler returns to; nil
	// when that can't be told.
	Signals func(link uint64) bool
	// Symbol is the link address of the function that a symbol names; nil when the file
	// is not at hand.
	Symbol func(name string) (uint64, bool)
}

// A FileRange is a part of a file that is loaded: bytes [Off, Off+Size) at link address Addr.
type FileRange struct{ Addr, Off, Size uint64 }

// A Source finds what names an image's addresses. Its error is what a frame without a name
// says, so it tells what was tried. Each image is asked for once.
type Source interface {
	Module(ctx context.Context, im *Image) (*Module, error)
}

// A Counter is a Source that wants to know how many frames of a thread were asked for.
type Counter interface{ Count(frames int) }

// A Symbolizer names the frames of captures. It is for one goroutine.
type Symbolizer struct {
	source  Source
	space   space
	count   int
	modules map[moduleKey]*module
	placed  map[*Image]*module // of the images that are laid out
	frames  []symbols.Frame
	raw     bool // Named gets what the map has found, instead of Calls, where there are Texts
}

// moduleKey is what decides which symbols an image gets: not where it was loaded.
type moduleKey struct {
	id, path, arch string
	gone           bool
}

// New makes a Symbolizer without images.
func New(source Source) *Symbolizer {
	return &Symbolizer{source: source, modules: map[moduleKey]*module{}, placed: map[*Image]*module{}}
}

// SetImages lays out the images of a capture in the place of all that were known. Where
// two of them overlap, addresses get a reason instead of a name.
func (s *Symbolizer) SetImages(images []*Image) error {
	if len(images) > maxImages {
		return fmt.Errorf("symbolize: %d images, at most %d are taken", len(images), maxImages)
	}
	s.space, s.count = newSpace(images), len(images)
	clear(s.placed)
	return nil
}

// AddImage adds one image the way a loader does: it replaces what was at its addresses.
func (s *Symbolizer) AddImage(im *Image) error {
	if s.count >= maxImages {
		return fmt.Errorf("symbolize: more than %d images", maxImages)
	}
	s.count++
	s.space.put(im)
	return nil
}

// Stack names the frames of one thread, innermost first, and hands each to yield until
// that returns false. The Named is used again for the next frame; its Calls belong to
// the Symbolizer and stay as they are.
//
// All addresses but the first are taken for return addresses: what is looked up is one
// less, which is inside the call. Frames of Kind Exact or Signal are looked up as they
// are, and so is the frame behind a signal's trampoline, which is told by its name, by
// its CFI or by its Kind.
func (s *Symbolizer) Stack(ctx context.Context, frames []Frame, yield func(*Named) bool) {
	var w Walk
	var n Named
	for k := range frames {
		s.Next(ctx, &w, &frames[k], &n)
		if !yield(&n) {
			return
		}
	}
}

// A Walk is the place in a stack whose frames come one by one. Its zero value is before
// the first frame of a thread.
type Walk struct{ inside, exact bool }

// Interrupted tells a walk that a signal interrupted the next frame.
func (w *Walk) Interrupted() { w.inside, w.exact = true, true }

// Next names one frame of a walk and moves the walk on.
func (s *Symbolizer) Next(ctx context.Context, w *Walk, f *Frame, n *Named) {
	exact := w.exact || f.Kind >= Exact || f.Kind == Auto && !w.inside
	m, link := s.locate(ctx, f, n)
	var trampoline bool
	if n.Reason == "" && (exact || !m.nameCall(s, link, n)) {
		trampoline = m.trampoline(s, link)
		m.name(s, link, exact || trampoline, n)
	}
	w.inside = true
	w.exact = trampoline || f.Kind == Signal && len(n.Calls) == 0 && len(n.found) == 0
}

// Exact names one address that belongs to no stack.
func (s *Symbolizer) Exact(ctx context.Context, addr uint64, n *Named) {
	f := Frame{Address: addr, Kind: Exact}
	if m, link := s.locate(ctx, &f, n); n.Reason == "" {
		m.name(s, link, true, n)
	}
}

// Holds says whether an image is known at addr.
func (s *Symbolizer) Holds(addr uint64) bool {
	_, ok := s.space.find(addr)
	return ok
}

// locate finds the frame's image, its module and the link address, and fills all of n
// but Calls. Without a module Reason says why.
func (s *Symbolizer) locate(ctx context.Context, f *Frame, n *Named) (*module, uint64) {
	*n = Named{Address: f.Address}
	p, ok := s.space.find(f.Address)
	switch {
	case ok && p.rival != nil:
		n.Reason = fmt.Sprintf("two images at this address: %s and %s", p.image.Name(), p.rival.Name())
		return nil, 0
	case ok:
		n.Image, n.Offset = p.image, f.Address-p.image.Load
	case f.Place != nil:
		n.Image, n.Offset = &Image{Path: f.Place.Path, ID: f.Place.ID}, f.Place.Offset
	default:
		n.Reason = reasonNoImage
		return nil, 0
	}
	m := s.placed[n.Image]
	if m == nil {
		m = s.module(ctx, n.Image)
		if ok {
			s.placed[n.Image] = m
		}
	}
	var link uint64
	switch {
	case m.err != "":
		n.Reason = m.err
	case ok:
		link, n.Reason = m.link(n.Image, n.Offset)
	default:
		link, n.Reason = m.place(f.Place)
		n.Offset = link
	}
	return m, link
}

// module opens an image's symbols, once.
func (s *Symbolizer) module(ctx context.Context, im *Image) *module {
	key := moduleKey{im.ID, im.Path, im.Arch, im.Gone}
	if m, ok := s.modules[key]; ok {
		return m
	}
	m := &module{}
	if len(s.modules) >= maxImages { // a text without end may name files without end
		m.err = fmt.Sprintf("more than %d images", maxImages)
		return m
	}
	s.modules[key] = m
	found, err := s.source.Module(ctx, im)
	if err != nil {
		m.err = strings.TrimPrefix(err.Error(), "symbols: ")
		return m
	}
	m.Module = *found
	return m
}
