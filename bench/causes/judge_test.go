package causes

import (
	"encoding/json"
	"testing"
	"time"
)

var heldLock = Plant{
	Name: "lock", Handler: "serve", Slow: 10 * time.Millisecond,
	Truth: Truth{Path: []string{"config_value", "*mutex_lock*"}, Kinds: []string{SlowerCalls, Self}, States: []string{Blocked}, WaitsFor: []string{"refresh_*"}},
}

// call is one call of an answer, in the form that callreel why writes.
func call(ms string, causes string) string {
	return `{"function":"serve","tid":7,"start_ns":1,"duration_ns":` + ms + `000000,"peers":900,"peer_p50_ns":30000,"causes":[` + causes + `]}`
}

const (
	trueCause = `{"path":["serve","config_value","pthread_mutex_lock"],"excess_ns":24000000,"share":0.99,"kind":"slower-calls","state":"blocked","calls":9,"peer_calls":9,
		"waits_for":{"tid":8,"function":"refresh_config","path":["refresh_config","parse_line"]},"text":"24 ms more in pthread_mutex_lock"}`
	nobody     = `{"path":["serve","config_value"],"kind":"self","state":"blocked","text":"24 ms more in config_value"}`
	wrongWho   = `{"path":["serve","config_value"],"kind":"self","state":"blocked","waits_for":{"tid":8,"function":"idle","path":["idle"]},"text":"x"}`
	wrongState = `{"path":["serve","config_value"],"kind":"self","state":"cpu","waits_for":{"tid":8,"function":"refresh_config","path":[]},"text":"x"}`
	wrongKind  = `{"path":["serve","config_value"],"kind":"more-calls","state":"blocked","waits_for":{"tid":8,"function":"refresh_config","path":[]},"text":"x"}`
	wrongPath  = `{"path":["serve","render_reply"],"kind":"self","state":"blocked","waits_for":{"tid":8,"function":"refresh_config","path":[]},"text":"x"}`
	stringPath = `{"path":["serve","pthread_mutex_lock@@GLIBC_2.2.5"],"kind":"self","state":"blocked","waits_for":{"tid":8,"function":"","path":"refresh_config"},"text":"x"}`
)

func TestOnlyTheTruthCounts(t *testing.T) {
	for _, test := range []struct {
		name                string
		calls               string
		first, three, place bool
		judged, claims      int
	}{
		{"the truth", call("24", trueCause), true, true, true, 1, 1},
		{"in other words", call("24", stringPath), true, true, true, 1, 1},
		{"nobody is named", call("24", nobody), false, false, true, 1, 1},
		{"somebody else is named", call("24", wrongWho), false, false, true, 1, 1},
		{"another state", call("24", wrongState), false, false, false, 1, 1},
		{"another kind", call("24", wrongKind), false, false, false, 1, 1},
		{"another place", call("24", wrongPath), false, false, false, 1, 1},
		{"third place", call("24", wrongKind+","+wrongPath+","+trueCause), false, true, false, 1, 1},
		{"fourth place", call("24", wrongKind+","+wrongPath+","+wrongState+","+trueCause), false, false, false, 1, 1},
		{"nothing", call("24", ""), false, false, false, 1, 0},
		{"no call at all", "", false, false, false, 0, 0},
		{"one of two isn't most", call("24", trueCause) + "," + call("25", wrongKind), false, false, false, 2, 2},
		{"two of three are", call("24", trueCause) + "," + call("25", wrongKind) + "," + call("26", trueCause), true, true, true, 3, 3},
		{"calls that haven't met the cause aren't judged", call("24", trueCause) + "," + call("5", wrongKind), true, true, true, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, err := ReadAnswer([]byte(`{"calls":[` + test.calls + `]}`))
			if err != nil {
				t.Fatal(err)
			}
			v := heldLock.Judge(a)
			if v.FirstRight() != test.first || v.ThreeRight() != test.three || 2*v.Place > v.Calls != test.place || v.Calls != test.judged || v.Claims != test.claims {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestPartsThatAreNoClaims(t *testing.T) {
	natural := `{"function":"serve","duration_ns":24000000,"causes":[],"natural":[` + wrongPath + "," + trueCause + `]}`
	a, err := ReadAnswer([]byte(`{"calls":[` + natural + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	if v := heldLock.Judge(a); v.Claims != 0 || v.FirstRight() || v.ThreeRight() || !v.ListedRight() {
		t.Errorf("%+v", v)
	}
	if v := (&Plant{}).Judge(a); v.Claims != 0 {
		t.Errorf("a control: %+v", v)
	}
}

func TestWhoWaitsForTheCauseIsSlowForItToo(t *testing.T) {
	p := heldLock
	p.Truth.Else = &Truth{Path: []string{"render_reply"}, Kinds: []string{Self}, States: []string{Blocked}, WaitsFor: []string{"refresh_*"}}
	a, err := ReadAnswer([]byte(`{"calls":[` + call("24", trueCause) + "," + call("24", wrongPath) + "," + call("24", wrongKind) + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	if v := p.Judge(a); v.First != 2 || v.Three != 2 || v.Listed != 2 || v.Place != 2 {
		t.Errorf("%+v", v)
	}
}

func TestWhatIsSaidFirstIsWhatDecided(t *testing.T) {
	a, err := ReadAnswer([]byte(`{"calls":[` + call("24", trueCause) + "," + call("24", wrongPath) + "," + call("24", wrongPath) + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	if v := heldLock.Judge(a); v.Said != "x [self, blocked, waits for refresh_config]" {
		t.Errorf("said %q", v.Said)
	}
	a.Calls[2] = a.Calls[0]
	if v := heldLock.Judge(a); v.Said != "24 ms more in pthread_mutex_lock [slower-calls, blocked, waits for refresh_config]" {
		t.Errorf("said %q", v.Said)
	}
}

// A control has no threshold and no truth: whatever is said is a claim.
func TestAnyClaimForNoiseCounts(t *testing.T) {
	control := Plant{Name: "noise"}
	a, err := ReadAnswer([]byte(`{"calls":[` + call("1", "") + "," + call("1", trueCause) + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	if v := control.Judge(a); v.Claims != 1 || v.First != 0 || v.Place != 0 {
		t.Errorf("%+v", v)
	}
}

func TestFunctionsAreNamedInManyWays(t *testing.T) {
	for _, test := range []struct {
		glob, function string
		same           bool
	}{
		{"find", "find", true},
		{"find", "find_all", false},
		{"find*", "find_all", true},
		{"find", "find.constprop.0", true},
		{"find", "find.part.3.cold", true},
		{"*mutex_lock*", "___pthread_mutex_lock@@GLIBC_2.2.5", true},
		{"add_rule", "Tenant::add_rule(unsigned int)", true},
		{"Tenant::Tenant", "Tenant::Tenant()", true},
		{"Tenant", "Tenant::add_rule(unsigned int)", false},
		{"get", "std::future<unsigned int>::get()", true},
		{"_M_copy", "std::_Rb_tree<int, std::pair<int const, (anonymous namespace)::x> >::_M_copy<false, y>(z*)", true},
		{"make", "(anonymous namespace)::make(int)", true},
		{"parse", "main.(*ruleSet).parse", true},
		{"backOff", "main.backOff", true},
		{"main", "main.backOff", false},
		{"operator new*", "operator new(unsigned long)", true},
		{"a*b*c", "a1b2c", true},
		{"a*b*c", "a1c2b", false},
		{"*", "", true},
	} {
		if got := sameFunction(test.glob, test.function); got != test.same {
			t.Errorf("%q means %q: %v", test.glob, test.function, got)
		}
	}
}

func TestWhatIsNotAnAnswerIsAnError(t *testing.T) {
	for _, text := range []string{"", "[]", `{"calls":7}`, `{"calls":[{"causes":[{"waits_for":{"path":7}}]}]}`} {
		if _, err := ReadAnswer([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// Every truth can be met, and each plant can be told from the others.
func TestTruthsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	kinds := map[string]bool{MoreCalls: true, SlowerCalls: true, NewPath: true, MissingPath: true, Self: true}
	states := map[string]bool{CPU: true, Ready: true, Blocked: true}
	for _, p := range All() {
		if seen[p.Name] {
			t.Errorf("two plants are named %s", p.Name)
		}
		seen[p.Name] = true
		if p.Handler == "" || p.Slow <= 0 || p.Truth.None() || len(p.Truth.Kinds) == 0 || len(p.Truth.States) == 0 {
			t.Errorf("%s: something is missing: %+v", p.Name, p.Truth)
		}
		for _, k := range p.Truth.Kinds {
			if !kinds[k] {
				t.Errorf("%s: kind %q", p.Name, k)
			}
		}
		for _, s := range p.Truth.States {
			if !states[s] {
				t.Errorf("%s: state %q", p.Name, s)
			}
		}
		for _, f := range p.Truth.Path {
			if sameFunction(f, p.Handler) && f != "*" {
				t.Errorf("%s: the handler would do as an answer", p.Name)
			}
		}
		if data, err := json.Marshal(p.Truth); err != nil || len(data) < 20 {
			t.Errorf("%s: %s, %v", p.Name, data, err)
		}
	}
	if len(seen) < 44 {
		t.Errorf("only %d plants", len(seen))
	}
	for _, p := range Controls() {
		if !p.Truth.None() {
			t.Errorf("%s has a cause", p.Name)
		}
	}
}
