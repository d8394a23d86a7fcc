package crash

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"testing"
)

// protoWriter writes a message of Protocol Buffers.
type protoWriter []byte

func (w protoWriter) number(field int, v uint64) protoWriter {
	return binary.AppendUvarint(binary.AppendUvarint(w, uint64(field)<<3), v)
}

func (w protoWriter) text(field int, text string) protoWriter {
	w = binary.AppendUvarint(binary.AppendUvarint(w, uint64(field)<<3|2), uint64(len(text)))
	return append(w, text...)
}

func (w protoWriter) message(field int, m protoWriter) protoWriter { return w.text(field, string(m)) }

// tombstoneProto says what tombstoneReport does.
func tombstoneProto() []byte {
	const libc, id = "/apex/com.android.runtime/lib64/bionic/libc.so", "ffff56789abcdef0123456789abcdef0"
	frame := func(rel, pc uint64, function string, offset uint64, file, id string) protoWriter {
		return protoWriter(nil).number(1, rel).number(2, pc).number(3, 0x7fc91522b0).text(4, function).number(5, offset).text(6, file).text(8, id)
	}
	thread := func(id uint64, name string, names []string, values ...uint64) protoWriter {
		m := protoWriter(nil).number(1, id).text(2, name)
		for k, reg := range names {
			m = m.message(3, protoWriter(nil).text(1, reg).number(2, values[k]))
		}
		return m
	}
	first := thread(17949, "my worker", []string{"x0", "x1", "x29", "lr", "sp", "pc", "pst"}, 0xc, 1, 0x7fc91522d0, 0x7da81396c0, 0x7fc91522b0, 0x7da8139700, 0x60001000)
	first = first.message(4, frame(0x42c9c, 0x7da8139700, "Foo::bar(int)", 168, "/data/app/base.apk!libfoo.so", "0123456789abcdef0123456789abcdef01234567"))
	first = first.message(4, frame(0xb7b7c, 0x7da8200000, "__pthread_start(void*)", 264, libc, id)).message(4, frame(0, 0x10, "", 0, "<anonymous:7fff0000>", ""))
	first = first.message(5, protoWriter(nil).text(1, "x0").number(3, 0x7fc91522a0).text(4, "\x00\x00\x00\x00"))
	first = first.message(5, protoWriter(nil).text(1, "pc").number(3, 0x7da81396f0).text(4, "\x1f\x20\x03\xd5\x1f\x20\x03\xd5\x1f\x20\x03\xd5\x1f\x20\x03\xd5"+
		"\x00\x00\x40\xb9\x1f\x20\x03\xd5\x1f\x20\x03\xd5\xc0\x03\x5f\xd6"))
	second := thread(17950, "other", []string{"x0", "x1"}, 1, 2).message(4, frame(0x52c9c, 0x7da8100000, "syscall", 28, libc, id))
	m := protoWriter(nil).number(1, 1).text(2, "google/raven/raven:13/TQ1A:user/release-keys").text(3, "MP1.0").text(4, "2023-01-30 10:35:04.588+0100")
	m = m.number(5, 17946).number(6, 17949).number(7, 10332).text(9, "com.example.prog")
	m = m.message(10, protoWriter(nil).number(1, 11).text(2, "SIGSEGV").number(3, 1).text(4, "SEGV_MAPERR").number(8, 1).number(9, 0xc))
	m = m.message(15, protoWriter(nil).text(1, "null pointer dereference")).text(14, "it failed")
	m = m.message(16, protoWriter(nil).number(1, 17950).message(2, second)).message(16, protoWriter(nil).number(1, 17949).message(2, first))
	return append(m.number(20, 3), 0x9d, 0x06, 1, 2, 3, 4) // a field of later times
}

func TestTombstoneInProtobufIsReadLikeItsText(t *testing.T) {
	text, got := readString(t, tombstoneReport), readString(t, string(tombstoneProto()))
	if got.Format != TombstoneProto {
		t.Errorf("the format is %v", got.Format)
	}
	for _, what := range []struct {
		name      string
		got, want any
	}{
		{"system", got.OS + got.Version + got.Arch + got.Time, text.OS + text.Version + text.Arch + text.Time},
		{"process", got.Process, text.Process}, {"reason", got.Reason, text.Reason}, {"code", got.Code, text.Code},
	} {
		if !reflect.DeepEqual(what.got, what.want) {
			t.Errorf("%s: %+v, want %+v", what.name, what.got, what.want)
		}
	}
	if len(got.Threads) != len(text.Threads) {
		t.Fatalf("%d threads, want %d", len(got.Threads), len(text.Threads))
	}
	for k, th := range got.Threads {
		want := text.Threads[k]
		if th.TID != want.TID || th.Name != want.Name || th.Crashed != want.Crashed || !reflect.DeepEqual(th.Registers, want.Registers) {
			t.Errorf("thread %d is %+v, want %+v", k, th, want)
		}
		if got, want := framesText(th), framesText(want); got != want {
			t.Errorf("thread %d: %s, want %s", k, got, want)
		}
	}
}

func framesText(t *Thread) string {
	out := ""
	for _, f := range t.Frames {
		out += fmt.Sprintf("%#x %s ", f.Address, f.Function)
		if f.Image != nil {
			out += f.Image.Path + " " + f.Image.ID
		}
		out += "\n"
	}
	return out
}

func TestDamagedTombstonesInProtobuf(t *testing.T) {
	data := tombstoneProto()
	for cut := range data {
		readAll(t, data[:cut:cut])
	}
	for at := range data {
		damaged := append([]byte(nil), data...)
		damaged[at] ^= 0xff
		readAll(t, damaged)
	}
}
