package demangle

import "strconv"

// smallOutput is how long a name is written without an allocation, in bytes.
const smallOutput = 1 << 10

// An output is what has been written of a name. What is longer than smallOutput or not
// reached through a pointer can stay on the caller's stack.
type output struct {
	budget
	buf  [smallOutput]byte
	more []byte // all that was written, once it is too much for buf
	n    int    // bytes written
}

func (o *output) write(s string) {
	if !o.spend(len(s)>>6) || o.n+len(s) > maxOutput {
		o.over = true
		return
	}
	switch {
	case o.more != nil:
		o.more = append(o.more[:o.n], s...)
	case o.n+len(s) <= smallOutput:
		copy(o.buf[o.n:], s)
	default:
		o.more = append(append(make([]byte, 0, 4*smallOutput), o.buf[:o.n]...), s...)
	}
	o.n += len(s)
}

func (o *output) writeByte(c byte) {
	if o.more == nil && o.n < smallOutput {
		o.buf[o.n] = c
		o.n++
		return
	}
	o.write(string([]byte{c}))
}

func (o *output) writeNumber(n int64) {
	var digits [20]byte
	for _, c := range strconv.AppendInt(digits[:0], n, 10) {
		o.writeByte(c)
	}
}

// written returns what was written.
func (o *output) written() []byte {
	if o.more != nil {
		return o.more[:o.n]
	}
	return o.buf[:o.n]
}

// last is the byte that was written last, 0 if there is none.
func (o *output) last() byte {
	if o.n == 0 {
		return 0
	}
	return o.written()[o.n-1]
}

// cut takes back what was written since there were n bytes.
func (o *output) cut(n int) { o.n = n }
