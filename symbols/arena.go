package symbols

// An arena hands out slices that are never given back, from chunks that double up to
// a bound: neither are they copied as a growing slice is, nor does a small image pay
// for a large one.
type arena[T any] struct {
	free []T
	next int // elements in the next chunk
}

// The sizes of an arena's first and of its largest chunks, in elements.
const (
	firstChunk = 1 << 10
	lastChunk  = 1 << 17
)

// take returns n elements, all zero, with room for more zero ones behind them that the
// next taker gets.
func (a *arena[T]) take(n, more int) []T {
	if n+more > len(a.free) {
		a.next = min(max(2*a.next, firstChunk), lastChunk)
		a.free = make([]T, max(n+more, a.next))
	}
	s := a.free[: n : n+more]
	a.free = a.free[n:]
	return s
}
