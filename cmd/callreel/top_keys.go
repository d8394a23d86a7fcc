package main

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/callreel/callreel/cmd/callreel/internal/screen"
	"github.com/callreel/callreel/reel"
)

// pageAct is what a key asks of whoever shows the page.
type pageAct int

const (
	pageStay pageAct = iota
	pageEnd
	pageSuspend
)

// add takes a stretch in.
func (p *topPage) add(s *reel.LiveSums) {
	p.dropped += s.Dropped
	p.recent.Add(s)
}

// look takes the numbers as they are now, unless the page is paused.
func (p *topPage) look() {
	if p.paused || p.recent.Empty() {
		return
	}
	p.snap = p.recent.Snapshot(p.all)
	sortTop(p.snap.Functions, p.sort)
}

// topKeys are the keys of the orders, and in which order the arrows go through them.
var (
	topKeys   = map[screen.Key]string{'c': "calls", 's': "self", 'p': "p99", 'm': "max"}
	topCircle = []string{"calls", "self", "p99", "max"}
)

// press does what a key says.
func (p *topPage) press(key screen.Key) pageAct {
	switch key {
	case screen.CtrlC, screen.CtrlSlash:
		return pageEnd
	case screen.CtrlZ:
		return pageSuspend
	case screen.Up:
		p.from--
	case screen.Down:
		p.from++
	case screen.PageUp:
		p.from -= pageRows
	case screen.PageDown:
		p.from += pageRows
	case screen.Home:
		p.from = 0
	case screen.End:
		p.from = 1 << 30 // lines bounds it
	case screen.Left, screen.Right:
		step := 1
		if key == screen.Left {
			step = len(topCircle) - 1
		}
		p.order(topCircle[(slices.Index(topCircle, p.sort)+step)%len(topCircle)])
	default:
		if p.typing {
			p.typed(key)
			return pageStay
		}
		return p.command(key)
	}
	return pageStay
}

// pageRows is how far PgUp and PgDn go.
const pageRows = 15

// order sorts by another key, also while the page is paused.
func (p *topPage) order(key string) {
	p.sort, p.from = key, 0
	if p.snap != nil {
		sortTop(p.snap.Functions, key)
	}
}

func (p *topPage) command(key screen.Key) pageAct {
	if order, found := topKeys[key]; found {
		p.order(order)
		return pageStay
	}
	switch key {
	case 'q', 'Q':
		return pageEnd
	case '/':
		p.typing = true
	case screen.Esc:
		p.filter = ""
	case screen.Space:
		p.paused = !p.paused
		p.look()
	case 't', screen.Tab:
		p.threads, p.off, p.from = !p.threads, false, 0
	case 'o':
		if p.f.budget.share > 0 {
			p.off, p.threads, p.from = !p.off, false, 0
		}
	case 'a':
		p.all, p.from = !p.all, 0
		p.look()
	}
	return pageStay
}

// maxFilter is how long a filter may be, in bytes.
const maxFilter = 200

// typed takes a key of the filter's text.
func (p *topPage) typed(key screen.Key) {
	p.from = 0
	switch key {
	case screen.Enter:
		p.typing = false
	case screen.Esc:
		p.typing, p.filter = false, ""
	case screen.CtrlU:
		p.filter = ""
	case screen.Backspace:
		if p.filter == "" {
			p.typing = false
			return
		}
		_, n := utf8.DecodeLastRuneInString(p.filter)
		p.filter = p.filter[:len(p.filter)-n]
	default:
		if key > 0 && unicode.IsPrint(rune(key)) && len(p.filter) < maxFilter {
			p.filter += string(rune(key))
		}
	}
}
