package symbolize

import (
	"encoding/binary"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/callreel/callreel/internal/safejson"
	"github.com/callreel/callreel/symbols"
)

// Texts keeps what JSON has of a map's names and files, by the map's numbers of these, for all Symbolizers that use the map:
// demangling a name and escaping it costs ten times as much as looking it up. Its methods may be called from several goroutines at
// once. Its zero value keeps nothing.
type Texts struct{ names, files textCache }

// NewTexts makes Texts that keep so many bytes at most; when that is not enough, they forget all.
func NewTexts(limit int64) *Texts {
	t := &Texts{}
	t.files.limit = limit / 4
	t.names.limit = limit - t.files.limit
	return t
}

// Size is how much is kept, in bytes.
func (t *Texts) Size() int64 { return t.names.size.Load() + t.files.size.Load() }

// Forget drops all that is kept.
func (t *Texts) Forget() {
	t.names.forget()
	t.files.forget()
}

// callTexts are the texts of one call; nil for what isn't kept yet.
type callTexts struct{ name, file []byte }

// appendCalls appends calls as jsonCall has them. The scratch is used again.
func (t *Texts) appendCalls(b []byte, found []symbols.Frame, scratch *[]callTexts) []byte {
	// All are looked for before any is used, so that the processor waits for their memory at once and not one by one.
	list := (*scratch)[:0]
	for k := range found {
		list = append(list, callTexts{t.names.get(found[k].NameID), t.files.get(found[k].FileID)})
	}
	*scratch = list
	for k := range found {
		if k > 0 {
			b = append(b, ',')
		}
		b = t.appendCall(b, &found[k], list[k])
	}
	return b
}

func (t *Texts) appendCall(b []byte, f *symbols.Frame, kept callTexts) []byte {
	if kept.name != nil {
		b = append(b, kept.name...)
	} else {
		start := len(b)
		b = safejson.AppendString(append(b, `{"function":`...), f.Function())
		b = safejson.AppendString(append(b, `,"linkage_name":`...), f.Linkage)
		b = append(b, `,"file":`...)
		t.names.put(f.NameID, b[start:])
	}
	if kept.file != nil {
		b = append(b, kept.file...)
	} else {
		start := len(b)
		b = append(safejson.AppendString(b, f.File()), `,"line":`...)
		t.files.put(f.FileID, b[start:])
	}
	b = strconv.AppendUint(b, uint64(f.Line), 10)
	if f.Inlined {
		return append(b, `,"inlined":true}`...)
	}
	return append(b, `,"inlined":false}`...)
}

// A textCache keeps texts by number. Reading takes no lock, and there are no pointers in it for the garbage collector to follow.
type textCache struct {
	limit int64
	size  atomic.Int64 // bytes
	table atomic.Pointer[textTable]
	mu    sync.Mutex // of writing
}

// textTable is a hash table. Its texts are in chunks, each behind its length and at a multiple of 8 bytes.
type textTable struct {
	slots  []atomic.Uint64 // upper half: the number; lower half: the place of its text, or 0 if the slot is free
	count  int             // of slots that aren't free
	chunks atomic.Pointer[[][]byte]
	used   int // bytes of the last chunk: only what is behind them is written
}

const (
	firstSlots = 64
	firstChunk = 4 << 10
	chunkBits  = 20 // of the bytes of a chunk; one for a longer text is as long as that
)

// slot is where the search for a number begins.
func (t *textTable) slot(id uint32) uint64 {
	return uint64(id) * 0x9E3779B97F4A7C15 >> 32 & uint64(len(t.slots)-1)
}

// find returns the slot of a number, or the free one where it would be, and what is in it.
func (t *textTable) find(id uint32) (at, slot uint64) {
	for at = t.slot(id); ; at = (at + 1) & uint64(len(t.slots)-1) {
		if slot = t.slots[at].Load(); slot == 0 || uint32(slot>>32) == id {
			return at, slot
		}
	}
}

// get returns the text of a number, nil if it isn't kept; it must not be changed.
func (c *textCache) get(id uint32) []byte {
	t := c.table.Load()
	if t == nil {
		return nil
	}
	_, slot := t.find(id)
	if slot == 0 {
		return nil
	}
	place := slot & (1<<32 - 1)
	chunk := (*t.chunks.Load())[place>>(chunkBits-3)]
	chunk = chunk[place&(1<<(chunkBits-3)-1)<<3:]
	n, size := binary.Uvarint(chunk)
	return chunk[size : uint64(size)+n]
}

// put keeps a copy of a text.
func (c *textCache) put(id uint32, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	need := int64(len(text) + binary.MaxVarintLen64 + 8)
	if c.size.Load()+need > c.limit {
		c.drop()
	}
	if need > c.limit {
		return
	}
	t := c.table.Load()
	if t == nil {
		t = &textTable{slots: make([]atomic.Uint64, firstSlots)}
		t.chunks.Store(&[][]byte{nil}) // so that no text has place 0
		c.size.Add(8 * firstSlots)
		c.table.Store(t)
	}
	if 2*t.count >= len(t.slots) {
		t = c.grow(t)
	}
	at, slot := t.find(id)
	if slot != 0 {
		return // another was faster
	}
	place, ok := c.add(t, text)
	if !ok {
		return
	}
	t.slots[at].Store(uint64(id)<<32 | place)
	t.count++
}

// add copies a text into a chunk.
func (c *textCache) add(t *textTable, text []byte) (place uint64, ok bool) {
	chunks := *t.chunks.Load()
	start := (t.used + 7) &^ 7
	if last := len(chunks) - 1; start+binary.MaxVarintLen64+len(text) > len(chunks[last]) {
		if len(chunks) >= 1<<(32-(chunkBits-3)) {
			return 0, false
		}
		size := max(min(firstChunk<<min(last, chunkBits), 1<<chunkBits), len(text)+binary.MaxVarintLen64)
		chunks, start = append(chunks[:len(chunks):len(chunks)], make([]byte, size)), 0
		c.size.Add(int64(size))
		t.chunks.Store(&chunks) // readers may have the old one
	}
	last := len(chunks) - 1
	n := binary.PutUvarint(chunks[last][start:], uint64(len(text)))
	t.used = start + n + copy(chunks[last][start+n:], text)
	return uint64(last)<<(chunkBits-3) | uint64(start)>>3, true
}

// grow doubles a table.
func (c *textCache) grow(t *textTable) *textTable {
	g := &textTable{slots: make([]atomic.Uint64, 2*len(t.slots)), count: t.count, used: t.used}
	g.chunks.Store(t.chunks.Load())
	for k := range t.slots {
		if slot := t.slots[k].Load(); slot != 0 {
			at, _ := g.find(uint32(slot >> 32))
			g.slots[at].Store(slot)
		}
	}
	c.size.Add(int64(8 * len(t.slots)))
	c.table.Store(g)
	return g
}

// drop forgets all; the lock is held.
func (c *textCache) drop() {
	c.table.Store(nil)
	c.size.Store(0)
}

func (c *textCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop()
}
