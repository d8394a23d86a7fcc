package sampler

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"
	"sort"
)

// jitMap names the code that a JIT compiler made, as the text file says that compilers
// write for perf (tools/perf/Documentation/jit-interface.txt of Linux): a line for each
// piece of code with its address and size, both hexadecimal, and its name. Lines are
// only added; where pieces overlap the later one has taken the place of the earlier.
type jitMap struct {
	text   []byte
	lines  []jitLine
	parsed int // bytes of text
	pieces []jitPiece
}

type jitLine struct {
	start, end uint64
	name       uint32 // offset in text
	size       uint32 // of the name
}

// jitPiece is a stretch of code that one line names.
type jitPiece struct {
	start, end uint64
	line       uint32
}

const (
	maxJITMap   = 64 << 20 // bytes of the file; node writes some 100 for a function
	maxJITLines = 1 << 20
	maxJITName  = 1 << 10 // of a name, bytes
)

// add takes in more of the text, whole lines only. Those that are damaged are left out.
func (m *jitMap) add(text []byte) {
	m.text = append(m.text, text...)
	before := len(m.lines)
	for len(m.lines) < maxJITLines {
		line, _, ok := bytes.Cut(m.text[m.parsed:], []byte{'\n'})
		if !ok {
			break
		}
		at := m.parsed
		m.parsed += len(line) + 1
		start, rest, ok1 := hexField(line)
		size, rest, ok2 := hexField(rest)
		rest = bytes.TrimRight(bytes.TrimLeft(rest, " \t"), " \t\r")
		if !ok1 || !ok2 || size == 0 || start+size < start || len(rest) == 0 {
			continue
		}
		name := at + bytes.Index(line, rest)
		m.lines = append(m.lines, jitLine{start, start + size, uint32(name), uint32(min(len(rest), maxJITName))})
	}
	if len(m.lines) > before {
		m.lay()
	}
}

// hexField takes a hexadecimal number off the front of a line.
func hexField(line []byte) (v uint64, rest []byte, ok bool) {
	line = bytes.TrimLeft(line, " \t")
	line = bytes.TrimPrefix(line, []byte("0x"))
	k := 0
	for ; k < len(line) && k < 16; k++ {
		c := line[k] | 0x20
		switch {
		case c >= '0' && c <= '9' && line[k] >= '0':
			v = v<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			return v, line[k:], k > 0 && (line[k] == ' ' || line[k] == '\t')
		}
	}
	return v, line[k:], k > 0 && k < len(line) && (line[k] == ' ' || line[k] == '\t')
}

// lay makes the pieces: at each address the last line that holds it wins.
func (m *jitMap) lay() {
	order := make([]uint32, len(m.lines))
	for k := range order {
		order[k] = uint32(k)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(m.lines[a].start, m.lines[b].start) })
	m.pieces = m.pieces[:0]
	var open latestFirst // lines that begin at or before at
	at := uint64(0)
	for len(order) > 0 || len(open) > 0 {
		if len(open) == 0 {
			at = max(at, m.lines[order[0]].start)
		}
		for len(order) > 0 && m.lines[order[0]].start <= at {
			heap.Push(&open, order[0])
			order = order[1:]
		}
		winner := open[0]
		end := m.lines[winner].end
		if end <= at {
			heap.Pop(&open)
			continue
		}
		// It holds until it ends or a later line begins.
		for len(order) > 0 && m.lines[order[0]].start < end {
			if order[0] > winner {
				end = m.lines[order[0]].start
				break
			}
			heap.Push(&open, order[0])
			order = order[1:]
		}
		if end > at {
			m.pieces = append(m.pieces, jitPiece{at, end, winner})
			at = end
		}
	}
}

// latestFirst is a heap of line numbers.
type latestFirst []uint32

func (h latestFirst) Len() int           { return len(h) }
func (h latestFirst) Less(a, b int) bool { return h[a] > h[b] }
func (h latestFirst) Swap(a, b int)      { h[a], h[b] = h[b], h[a] }
func (h *latestFirst) Push(x any)        { *h = append(*h, x.(uint32)) }
func (h *latestFirst) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// find returns the name of the code at an address, "" when there is none.
func (m *jitMap) find(addr uint64) string {
	k := sort.Search(len(m.pieces), func(k int) bool { return m.pieces[k].end > addr })
	if k == len(m.pieces) || addr < m.pieces[k].start {
		return ""
	}
	l := &m.lines[m.pieces[k].line]
	return string(m.text[l.name : l.name+l.size])
}
