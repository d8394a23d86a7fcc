package viewer

import (
	"reflect"
	"strconv"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

func TestACallHasItsArguments(t *testing.T) {
	path := madeReel(t, []string{"main", "work"}, func(w *reel.Writer) {
		realtest.Must(t, w.AddArguments(2, false, []reel.Argument{{Name: "n", Type: "int", Kind: reel.ArgumentInt}, {Name: "s\x1b", Kind: reel.ArgumentString}}))
		realtest.Must(t, w.AddArguments(2, true, []reel.Argument{{Name: "return", Kind: reel.ArgumentBool}}))
		for i := range 2 {
			tw, err := w.Thread(reel.Thread{TID: 100 + i, Process: 77, Name: "t"})
			realtest.Must(t, err)
			for k := range uint64(300) {
				at := 1000 + k*100
				realtest.Must(t, tw.AppendWith([]reel.Event{reel.Entry(at, 800, 1), reel.Entry(at+10, 700, 2), reel.Exit(at+30, 700, 2), reel.Exit(at+40, 800, 1)}, []reel.ValueSet{
					{Number: 1, Values: []reel.Value{{Bits: k + uint64(1000*i)}, {Bytes: []byte("<b>")}}}, {Number: 2, Values: []reel.Value{{Bits: k % 2}}},
				}))
			}
		}
	})
	c := serveReels(t, path)
	type answer struct {
		Start     uint64 `json:"start_ns"`
		Arguments []argumentJSON
	}
	first := ask[answer](c, "call?lane=1&row=0&at=0").Start
	got := ask[answer](c, "call?lane=1&row=1&at="+strconv.FormatUint(first+7*100+15, 10)).Arguments
	want := []argumentJSON{{"n", "int", "1007"}, {"s\x1b", "", "<b>"}, {"return", "", "true"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := ask[answer](c, "call?lane=1&row=0&at="+strconv.FormatUint(first, 10)).Arguments; got != nil {
		t.Errorf("main has %+v", got)
	}
}
