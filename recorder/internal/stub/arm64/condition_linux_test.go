package arm64

import (
	"testing"

	"github.com/callreel/callreel/recorder/internal/stub"
)

// A call is recorded if its arguments are as a condition says, and its exit if its entry was.
func TestConditionsChooseCalls(t *testing.T) {
	number := func(size uint8, signed bool) stub.Operand { return stub.Operand{Reg: x0, Size: size, Signed: signed} }
	text := stub.Operand{Reg: x1, Size: 4, Memory: true, Off: 4} // "nger"
	const nger = 0x7265676E
	for name, k := range map[string]struct {
		in, inside []stub.Condition
		argument   uint64
		want       bool
	}{
		"equal":                      {[]stub.Condition{{Value: number(8, false), Comparison: stub.Equal, With: 4660}}, nil, 4660, true},
		"not equal":                  {[]stub.Condition{{Value: number(8, false), Comparison: stub.Equal, With: 4660}}, nil, 4661, false},
		"signed":                     {[]stub.Condition{{Value: number(2, true), Comparison: stub.Less, With: 0}}, nil, 0xFFFF, true},
		"unsigned":                   {[]stub.Condition{{Value: number(2, false), Comparison: stub.Less, With: 10}}, nil, 0xFFFF, false},
		"above, of a byte":           {[]stub.Condition{{Value: number(1, false), Comparison: stub.Greater, With: 0x80}}, nil, 0x181, true},
		"at least, of eight":         {[]stub.Condition{{Value: number(8, false), Comparison: stub.GreaterEqual, With: -1}}, nil, 5, false},
		"two":                        {[]stub.Condition{{Value: number(4, true), Comparison: stub.NotEqual, With: 3}, {Value: number(4, true), Comparison: stub.LessEqual, With: 5}}, nil, 5, true},
		"two, of which one is false": {[]stub.Condition{{Value: number(4, true), Comparison: stub.NotEqual, With: 5}, {Value: number(4, true), Comparison: stub.LessEqual, With: 5}}, nil, 5, false},
		"in memory":                  {nil, []stub.Condition{{Value: text, Comparison: stub.Equal, With: nger}}, 1, true},
		"not in memory":              {nil, []stub.Condition{{Value: text, Comparison: stub.Equal, With: 7}}, 1, false},
		"unreadable":                 {nil, []stub.Condition{{Value: stub.Operand{Reg: x0, Size: 1, Memory: true}, Comparison: stub.NotEqual, With: 7}}, 1, false},
	} {
		for how, m := range map[string]machine{"": lseMachine, ", old": oldMachine, ", SVE": smeMachine} {
			t.Run(name+how, func(t *testing.T) {
				c := &stub.Captures{Conditions: k.in, Entry: &stub.Capture{Fields: []stub.Field{entrySP}, Conditions: k.inside}, Return: &stub.Capture{Fields: []stub.Field{entrySP}}}
				d := startDriver(t, stubSetup{machine: m, captures: c, ids: 1})
				for range 3 {
					d.do("name 0 %d", k.argument)
					d.do("name 1 9")
				}
				d.round()
				want := uint64(0)
				if k.want {
					want = 3
				}
				if sum := d.drainer.Totals(); sum.Entries != want || sum.Events != 2*want || sum.Dropped != 0 {
					t.Errorf("%+v, want %d calls", sum, want)
				}
				d.do("state 50")
			})
		}
	}
}
