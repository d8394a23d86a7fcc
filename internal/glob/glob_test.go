package glob

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAGlobMatchesWholeNames(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"main", "main", true},
		{"main", "main2", false},
		{"*", "", true},
		{"get?ommand", "getCommand", true},
		{"std::*::find", "std::map<a/b>::find", true},
		{"*", "github.com/callreel/callreel/reel.(*Writer).Close", true},
		{"a?b", "a/b", true},
		{"[a-c]x", "bx", true},
		{"[a-c]x", "dx", false},
		{"operator[]", "operator[]", true}, // not well-formed, and a name
		{"operator[]", "operator", false},
		{"[", "x", false},
		{"*Command", "getCommand", true},
		{"*", "std::map<int, std::string>::find(int const&)", true},
		{"std::*::find(*", "std::map<int, std::string>::find(int const&)", true},
		{"net/http.*", "net/http.(*Server).Serve", true},
		{"net*Serve", "net/http.(*Server).Serve", true},
		{"net/http.(*Server).Serve", "net/http.(*Server).Serve", true},
		{"[fg]oo", "goo", true},
		{"[fg]oo", "hoo", false},
		{"*::operator[]", "vector<int>::operator[]", true},
		{"*::operator[]*", "vector<int>::operator[](unsigned long)", true},
		{"operator delete[]", "operator delete[]", true},
		{"name[abi:cxx11]*", "name[abi:cxx11]()", true},
		{"operator[]*", "operatorx", false},
		{`a\*b`, "a*b", true},
		{`a\*b`, "axb", false},
		{"[", "[", true},
		{"\x1b*", "\x1b[31m", true},
	} {
		if got := Match(c.pattern, c.name); got != c.want {
			t.Errorf("Match(%q, %q) is %v", c.pattern, c.name, got)
		}
	}
}

// Of globs that are well-formed, and names without slashes, path.Match says the same; of those with brackets it says less.
func FuzzMatch(f *testing.F) {
	f.Add("a*b?c", "axxbyc")
	f.Add("*?é*", "xéy")
	f.Add("[a-c]*[^d]", "bxe")
	f.Add("*??", "\U000389ab")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if strings.Contains(pattern+name, "/") || pattern == name {
			return
		}
		want, err := path.Match(pattern, name)
		got := Match(pattern, name)
		if want && !got && !strings.ContainsAny(pattern, `[\`) {
			want = matchesInBytes(pattern, name)
		}
		if err == nil && got != want && (want || !strings.Contains(pattern, "[")) {
			t.Errorf("Match(%q, %q) is %v", pattern, name, got)
		}
	})
}

// matchesInBytes is what path.Match says where each character beyond ASCII is a byte of its own: else its * takes parts of characters, too. It
// errs towards false.
func matchesInBytes(pattern, name string) bool {
	const most = 0xC0 - utf8.RuneSelf // bytes that begin no character
	known := map[rune]byte{}
	narrow := func(text string) string {
		var b []byte
		for _, r := range text {
			if r < utf8.RuneSelf {
				b = append(b, byte(r))
				continue
			}
			if known[r] == 0 {
				known[r] = byte(utf8.RuneSelf + len(known)%most)
			}
			b = append(b, known[r])
		}
		return string(b)
	}
	matches, err := path.Match(narrow(pattern), narrow(name))
	return err == nil && matches && len(known) <= most && utf8.ValidString(pattern) && utf8.ValidString(name)
}

func TestAnyNotesEachGlobThatMatches(t *testing.T) {
	globs, hit := []string{"a*", "b*", "*c"}, make([]bool, 3)
	if !Any(globs, hit, []string{"abc"}) || !slices.Equal(hit, []bool{true, false, true}) {
		t.Errorf("%v", hit)
	}
	if Any(globs, hit, []string{"x"}) || !slices.Equal(hit, []bool{true, false, true}) {
		t.Errorf("what matches nothing has changed %v", hit)
	}
	if !Any(globs, nil, []string{"x", "bx"}) || Any(nil, nil, []string{"x"}) {
		t.Error("without notes it says otherwise")
	}
}

func TestSpellingsAreWhatPeopleWrite(t *testing.T) {
	names := []string{"_ZN3foo3barEi", "main"}
	want := []string{"_ZN3foo3barEi", "main", "foo::bar(int)", "foo::bar"}
	if got := Spellings(names); !slices.Equal(got, want) || len(names) != 2 {
		t.Errorf("%q", got)
	}
}

func TestNearNamesHoldTheGlobOrAreLikeIt(t *testing.T) {
	names := []string{"getCommand", "getcommandx", "getGenericCommand", "setCommand", "unrelated", "getCommand"}
	if got := Near("*getcommand*", names); !slices.Equal(got, []string{"getCommand", "getcommandx", "setCommand"}) {
		t.Errorf("%q", got)
	}
	if got := Near("zzzzzzzz", names); got != nil {
		t.Errorf("%q is near nothing", got)
	}
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("name%02d", i))
	}
	if got := Near("name", many); !slices.Equal(got, many[:5]) {
		t.Errorf("%q", got)
	}
}

func TestWhatIsMisspelt(t *testing.T) {
	names := []string{"processCommand", "libssl.so.3", "svc_run"}
	for glob, want := range map[string]bool{
		"run": false, "rum": false, "svc": false, "svcrun": true,
		"processComand": true, "PROCESSCOMMAND": true, "Command": true, "libssl.so": true,
		"dlopen_me": false, "processComand*": false, "[p]rocessComand": false, "libcrypto.so.3": false,
	} {
		if got := Misspelt(glob, names); got != want {
			t.Errorf("Misspelt(%q) is %v", glob, got)
		}
	}
}

func TestTheErrorNamesWhatIsNear(t *testing.T) {
	var err error = NoMatch("-f", "mian", []string{"main", "other"})
	if err.Error() != "-f mian matches nothing; near it are main" {
		t.Error(err)
	}
	if got := NoMatch("-m", "x", nil).Error(); got != "-m x matches nothing" {
		t.Error(got)
	}
	if none := (*NoMatchError)(nil); !errors.As(err, &none) || none.Glob != "mian" {
		t.Errorf("%+v", none)
	}
}

// distance is Levenshtein's by its definition.
func distance(a, b string) int {
	switch {
	case a == "" || b == "":
		return len(a) + len(b)
	case a[0] == b[0]:
		return distance(a[1:], b[1:])
	}
	return 1 + min(distance(a[1:], b), distance(a, b[1:]), distance(a[1:], b[1:]))
}

func TestEditDistanceIsLevenshteinsUpToTheLimit(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		b := make([]byte, random.IntN(7))
		for i := range b {
			b[i] = "abc"[random.IntN(3)]
		}
		return string(b)
	}
	for range 2000 {
		a, b, limit := word(), word(), random.IntN(5)
		if got, want := editDistance(a, b, limit), distance(a, b); got != want && (got <= limit || want <= limit) {
			t.Fatalf("editDistance(%q, %q, %d) is %d, and not %d", a, b, limit, got, want)
		}
	}
}
