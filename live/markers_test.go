package live

import (
	"reflect"
	"testing"
	"time"

	"github.com/callreel/callreel/reel"
)

func TestSitesOfAMarkerAreCountedTogether(t *testing.T) {
	m := NewMeter(time.Second)
	if err := m.Begin(reel.Header{}); err != nil {
		t.Fatal(err)
	}
	first, _ := m.AddMarkers([]reel.Marker{{Provider: "p", Name: "a"}, {Provider: "p", Name: "b"}})
	third, _ := m.AddMarkers([]reel.Marker{{Provider: "p", Name: "b"}})
	if first != 1 || third != 3 {
		t.Fatalf("%d, %d", first, third)
	}
	th := &thread{m: m}
	if err := th.Marks([]reel.Mark{{Marker: 1}, {Marker: 2}, {Marker: 3}, {Marker: 3}, {Marker: 0}, {Marker: 9}}); err != nil {
		t.Fatal(err)
	}
	if got := m.Markers(); !reflect.DeepEqual(got, []Marker{{"p", "b", 3}, {"p", "a", 1}}) {
		t.Errorf("%+v", got)
	}
}
