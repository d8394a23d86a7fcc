package budget

import "testing"

// What always stays may flood in each stretch, of which many are short. Others that are called now and then stay, one that floods goes.
func TestOthersStayBesideWhatAlwaysStaysAndFloods(t *testing.T) {
	k, p := keeper()
	p.kept[1] = true
	told := 0
	k.c.Notice = func(string, ...any) { told++ }
	for i := range 1200 {
		list := []Function{{ID: 1, Calls: 20_000, Half: 10, P99: 20, Kept: true}}
		if i%10 == 0 {
			list = append(list, Function{ID: 2, Calls: 1, Half: 2_000_000, P99: 4_000_000}, Function{ID: 3, Calls: 2, Half: 300, P99: 400})
		}
		if i >= 1100 {
			list = append(list, Function{ID: 4, Calls: 10_000, Half: 40, P99: 90})
		}
		for id := range p.off {
			if id == 4 {
				list = list[:len(list)-1]
			}
		}
		if err := k.look(t.Context(), list, loadOf(list, 0.00005)); err != nil {
			t.Fatal(err)
		}
		if i == 1099 && len(p.off) > 0 {
			t.Errorf("off: %v", p.off)
		}
	}
	if got := sorted(p.off); len(got) != 1 || got[0] != 4 {
		t.Errorf("off: %v", got)
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}
