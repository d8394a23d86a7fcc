package symbolize

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/callreel/callreel/symbols"
)

// fixed answers every address.
type fixed struct{}

func (fixed) Lookup(link uint64, frames []symbols.Frame) ([]symbols.Frame, symbols.Reason) {
	if link%3 == 0 {
		return frames, symbols.NoFunction
	}
	for k := range link % 4 {
		f := symbols.Frame{Linkage: fmt.Sprintf("_Z3foov\x1b<&>%d", link%100), Line: uint32(link), Inlined: k+1 < link%4, NameID: uint32(link % 100)}
		if k > 0 {
			f.Dir, f.Base, f.FileID = "/src", fmt.Sprintf("a%d.c", k), uint32(k)
		}
		frames = append(frames, f)
	}
	return frames, symbols.Found
}

// keeping is a Source of one map, of which texts are kept or not.
type keeping struct{ texts *Texts }

func (k keeping) Module(context.Context, *Image) (*Module, error) {
	return &Module{Map: fixed{}, Texts: k.texts}, nil
}

// sameAnswers compares what is answered quickly with what is answered otherwise.
func sameAnswers(t *testing.T, in []byte) {
	t.Helper()
	var quick, plain bytes.Buffer
	quickErr := JSONBytes(t.Context(), in, &quick, keeping{NewTexts(1 << 20)})
	plainErr := JSON(t.Context(), bytes.NewReader(in), &plain, keeping{})
	if (quickErr == nil) != (plainErr == nil) || quickErr == nil && quick.String() != plain.String() {
		t.Fatalf("%q:\n%v\n%s\nwant\n%v\n%s", in, quickErr, &quick, plainErr, &plain)
	}
}

// usual are captures of the usual form, and of forms near it.
var usual = []struct {
	text  string
	quick bool
}{
	{`{"images":[{"id":"abcd","load":"0x1000","size":65536,"path":"/bin/a"}],"threads":[{"tid":1,"frames":[{"address":"0x1234"},{"address":4661}]}]}`, true},
	{` { "images" : [ ] , "threads" : [ { "tid":12, "name":"main", "frames" : [ ] } , {"frames":[{"address":"0xffffffffffffffff"}]} ] } ` + "\n", true},
	{`{"images":[{"path":"a]\"}","load":1}],"threads":[]}`, true},
	{`{"images":[{"load":"0x1000"}],"threads":[{"tid":1,"frames":[{"address":"0x1234"},{"address":4661}]}]}`, true},
	{`{"images":[{"id":"abcd","load":"0x1000"}],"threads":[{"tid":1,"frames":[{"address":"0x1234","kind":"signal"}]}]}`, false},
	{`{"images":[],"threads":[{"tid":"io","frames":[{"address":01}]}]}`, false},
	{`{"threads":[{"frames":[1,2]}],"images":[{"id":"ab","load":0}]}`, false},
	{`{"images":[],"threads":[]}{"images":[],"threads":[]}`, false},
	{`{"images":[],"threads":[{"tid":1,"frames":[],"crashed":true}]}`, false},
	{`{"images":[],"threads":[{"tid":1,"tid":2,"frames":[]}]}`, true},
	{`{"images":[{"load":1},{"load":"x"}],"threads":[]}`, false},
	{`{"images":[{"load":1},],"threads":[]}`, false},
	{`{"images":[],"threads":[{"tid":1,"frames":[{"address":18446744073709551616}]}]}`, false},
}

func TestUsualCapturesAreAnsweredQuicklyAndTheSame(t *testing.T) {
	for _, c := range usual {
		if _, ok := readQuickly([]byte(c.text)); ok != c.quick {
			t.Errorf("%s: read quickly: %v", c.text, ok)
		}
		sameAnswers(t, []byte(c.text))
	}
}

func FuzzQuickAnswersAreTheSame(f *testing.F) {
	for _, c := range usual {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if _, ok := readQuickly(in); ok { // what isn't is read by the same code
			sameAnswers(t, in)
		}
	})
}
