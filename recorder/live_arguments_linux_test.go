package recorder_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// gdbArguments prints, at breakpoints, the values of expressions, one JSON list a call.
const gdbArguments = `
import gdb, json
def text(data, n=None):
    return data.string(encoding="latin-1", length=n) if n is not None else data.string(encoding="latin-1")
def value(v):
    t = v.type.strip_typedefs()
    if t.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        return value(v.referenced_value())
    name = str(t.unqualified())
    if t.code == gdb.TYPE_CODE_STRUCT:
        if name == "string":
            return text(v["str"], int(v["len"]))
        if name == "[]uint8":
            return "".join("%02x" % int(v["array"][i]) for i in range(int(v["len"])))
        if "basic_string_view<" in name:
            return text(v["_M_str"], int(v["_M_len"]))
        if "basic_string<" in name:
            return text(v["_M_dataplus"]["_M_p"], int(v["_M_string_length"]))
    if t.code == gdb.TYPE_CODE_BOOL:
        return bool(v)
    if t.code == gdb.TYPE_CODE_ENUM:
        return str(v).replace("(", "").replace(")", "").split("::")[-1]
    if t.code == gdb.TYPE_CODE_FLT:
        f = float(v)
        return f if f - f == 0 else str(f)
    if t.code == gdb.TYPE_CODE_PTR:
        if t.target().unqualified().strip_typedefs().name == "char":
            return None if int(v) == 0 else text(v)
        return hex(int(v) & (1 << 64) - 1)
    if t.code == gdb.TYPE_CODE_ARRAY:
        return text(v)
    if name == "char":
        return "char %d" % (int(v) & 255)
    return int(v)
class At(gdb.Breakpoint):
    def __init__(self, function, place, expressions):
        super().__init__(place, internal=True)
        self.function, self.expressions = function, expressions
    def stop(self):
        out = []
        for e in self.expressions:
            try:
                v = value(gdb.parse_and_eval(e))
            except (gdb.MemoryError, UnicodeDecodeError):
                v = "?"
            except gdb.error as x:
                v = "error: " + str(x)
            out.append(v)
        log.write(json.dumps([self.function, out]) + "\n")
        return False
gdb.execute("set print symbol off")
for function, place, expressions in json.load(open(PLAN)):
    At(function, place, expressions)
log = open(LOG, "w")
gdb.execute("run")
log.close()
`

// argumentCase is a program, and what of its functions is looked at.
type argumentCase struct {
	name    string
	build   func(t *testing.T) string
	rounds  string
	wanted  []wantedArguments
	unlike  []string          // values that gdb doesn't print right, by the compiler's debug information
	results map[string]string // the function whose result is the first argument of another one
	attach  bool              // to the running program
}

// wantedArguments are those of a function: as callreel is asked for them, and as gdb is where it has other words.
type wantedArguments struct {
	function, place string
	values          []string
	gdb             map[string]string
}

var cArguments = argumentCase{
	rounds: "92", // of 11 calls
	unlike: []string{"raw[:n]"},
	wanted: []wantedArguments{
		{function: "integers", values: []string{"a", "b", "c", "d", "e", "f", "g", "h"}},
		{function: "mixed", values: []string{"a", "b", "c", "d", "e", "p", "f"}},
		{function: "texts", values: []string{"s", "t", "n", "raw[:n]"}, gdb: map[string]string{"raw[:n]": "n"}},
		{function: "structs", values: []string{"c->argc", "c->argv[0]", "c->name", "c->next->name", "c->weight", "c->small", "p.a", "p.b", "g.a", "g.c", "bad->argc", "q.a", "q.b", "q.c"}},
		{function: "paired", values: []string{"c", "n"}},
		{function: "large", values: []string{"n"}},
		{function: "got_long", values: []string{"v"}},
		{function: "got_bool", values: []string{"v"}},
		{function: "got_text", values: []string{"v"}},
		{function: "got_double", values: []string{"v"}},
		{function: "got_pair", values: []string{"v.a", "v.b"}},
	},
	results: map[string]string{"integers": "got_long", "mixed": "got_bool", "texts": "got_text", "structs": "got_double", "paired": "got_pair"},
}

var cxxArguments = argumentCase{
	rounds: "170", // of 6 calls
	wanted: []wantedArguments{
		{function: "app::Server::handle", values: []string{"this->name", "this->port", "this->id", "this->busy", "path", "body", "part", "m", "s.x", "s.y"}},
		{function: "app::Server::own", values: []string{"o.name", "o.k", "after", "ref", "last"}},
		{function: "app::Server::got_string", values: []string{"v"}},
		{function: "app::got_int", values: []string{"v"}},
		{function: "double app::twice<double>(double, double const&)", place: "app::twice<double>", values: []string{"v", "w"}},
		{function: "unsigned short app::twice<unsigned short>(unsigned short, unsigned short const&)", place: "app::twice<unsigned short>", values: []string{"v", "w"}},
	},
	results: map[string]string{"app::Server::handle": "app::Server::got_string", "app::Server::own": "app::got_int"},
}

var goArguments = argumentCase{
	rounds: "160", // of 7 calls
	unlike: []string{"r.ID", "r.Path", "r.Weight"},
	wanted: []wantedArguments{
		{function: "main.(*server).handle", values: []string{"s.name", "s.last.ID", "s.last.Path", "s.last.Weight", "path", "body", "m", "w", "ok"}},
		{function: "main.many", values: []string{"a", "b", "c", "d", "e", "f", "j", "r.ID", "r.Path", "r.Weight", "x", "y"}},
		{function: "main.deep", values: []string{"n"}},
		{function: "main.gotInt", values: []string{"v"}},
		{function: "main.gotString", values: []string{"v"}},
	},
	results: map[string]string{"main.many": "main.gotString"},
}

// The oracle is gdb: what it prints at breakpoints at the same functions, of a thousand calls with arguments of all kinds, by each compiler.
func TestArgumentsAreWhatGDBPrints(t *testing.T) {
	t.Parallel()
	needLive(t)
	realtest.Need(t, realtest.GDB)
	optimized := cArguments
	optimized.unlike = append(slices.Clone(optimized.unlike), "q.a", "q.b", "q.c")
	built := func(c argumentCase, name, target string, flags ...string) argumentCase {
		c.name, c.build = name, func(t *testing.T) string { return realtest.Build(t, target, flags...) }
		return c
	}
	golang := goArguments
	golang.name, golang.build = "go", func(t *testing.T) string { return goProgram(t, "arguments") }
	for _, c := range []argumentCase{
		built(optimized, "gcc", "arguments"), built(cArguments, "clang, not optimized", "arguments", "cc=clang-19", "-O0"),
		built(cxxArguments, "g++", "arguments_cxx"), built(cxxArguments, "clang++, not optimized", "arguments_cxx", "cc=clang-19", "-O0", "-fstandalone-debug"), golang,
	} {
		t.Run(c.name, func(t *testing.T) { c.compare(t, 1000) })
	}
}

// compare holds what is recorded of so many calls at least against what gdb prints.
func (c *argumentCase) compare(t *testing.T, least int) {
	t.Helper()
	program := c.build(t)
	got := c.recorded(t, program)
	want := c.printed(t, program)
	calls := 0
	for _, w := range c.wanted {
		g, p := got[w.function], want[w.function]
		if len(g) != len(p) || len(p) == 0 {
			t.Errorf("%s: values of %d calls, gdb has %d", w.function, len(g), len(p))
			continue
		}
		calls += len(p)
		for i := range p {
			for k, name := range w.values {
				if !same(g[i][k], p[i][k]) && !slices.Contains(c.unlike, name) {
					t.Fatalf("call %d of %s: %s is %v, gdb has %v", i, w.function, name, g[i][k], p[i][k])
				}
			}
		}
	}
	if calls < least {
		t.Errorf("only %d calls", calls)
	}
	for from, to := range c.results {
		g, p := got["return of "+from], want[to]
		for i := range p {
			if i >= len(g) || !same(g[i][0], p[i][0]) {
				t.Fatalf("%s: result %d of %d is %v, gdb has %v", from, i, len(g), g[min(i, len(g)-1)], p[i])
			}
		}
	}
}

// same says whether two values are: strings up to what is recorded of them.
func same(got, want any) bool {
	g, isText := got.(string)
	w, alsoText := want.(string)
	if c, isChar := strings.CutPrefix(w, "char "); isChar {
		var v int
		fmt.Sscan(c, &v)
		return g == (&reel.Argument{Kind: reel.ArgumentChar}).Text(reel.Value{Bits: uint64(v)})
	}
	if isText && alsoText {
		if cut, isCut := strings.CutSuffix(g, "…"); isCut {
			return len(cut) == 64 && strings.HasPrefix(w, cut)
		}
		return g == w
	}
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if bytes.Equal(a, b) {
		return true
	}
	var x, y float64
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && float32(x) == float32(y)
}

// recorded are the values in a recording, by function and call.
func (c *argumentCase) recorded(t *testing.T, program string) map[string][][]any {
	t.Helper()
	file := filepath.Join(t.TempDir(), "arguments.reel")
	flags := []string{"record", "-o", file, "--lossless", "-m", filepath.Base(program)}
	for _, w := range c.wanted {
		flags = append(flags, "-f", w.function, "--args", w.function+"("+strings.Join(w.values, ", ")+")")
	}
	for from := range c.results {
		flags = append(flags, "--ret", from)
	}
	if c.attach {
		file = recordWaiting(t, program, c.rounds, flags[3:]...)
	} else if out, err := exec.Command(realtest.CallreelPath(t), slices.Concat(flags, []string{"--", program, c.rounds})...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type call struct {
		name   string
		at     uint64
		values []any
	}
	var calls []call
	for _, thread := range f.Threads() {
		r := f.Values(thread.Key)
		for s := r.Next(); s != nil; s = r.Next() {
			fn, _ := f.Function(s.Function)
			name := demangle.Short(fn.Name)
			if full := demangle.Name(fn.Name); strings.Contains(full, "<") && strings.HasPrefix(full, name) == false {
				name = full
			}
			if s.AtReturn {
				name = "return of " + name
			}
			var values []any
			args := f.Arguments(s.Function, s.AtReturn)
			for i := range args {
				values = append(values, args[i].JSON(s.Values[i]))
			}
			calls = append(calls, call{name, s.Time, values})
		}
	}
	slices.SortStableFunc(calls, func(a, b call) int { return cmp.Compare(a.at, b.at) }) // a goroutine may have been on several threads
	got := map[string][][]any{}
	for _, k := range calls {
		got[k.name] = append(got[k.name], k.values)
	}
	return got
}

// printed is what gdb prints.
func (c *argumentCase) printed(t *testing.T, program string) map[string][][]any {
	t.Helper()
	dir := t.TempDir()
	var plan [][]any
	for _, w := range c.wanted {
		var list []string
		for _, v := range w.values {
			if other, ok := w.gdb[v]; ok {
				v = other
			}
			list = append(list, v)
		}
		place := w.place
		if place == "" {
			place = w.function
		}
		plan = append(plan, []any{w.function, quoted(place), list})
	}
	data, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	planFile, log := filepath.Join(dir, "plan"), filepath.Join(dir, "log")
	script := fmt.Sprintf("PLAN, LOG = %q, %q\n%s", planFile, log, gdbArguments)
	for name, text := range map[string]string{planFile: string(data), filepath.Join(dir, "script.py"): script} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load no", "-x", filepath.Join(dir, "script.py"),
		"--args", program, c.rounds)
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1") // a breakpoint at which a signal comes is met twice
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("gdb: %v\n%s", err, said)
	}
	lines, err := os.ReadFile(log)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	want := map[string][][]any{}
	for s := bufio.NewScanner(bytes.NewReader(lines)); s.Scan(); {
		var line struct {
			function string
			values   []any
		}
		d := json.NewDecoder(bytes.NewReader(s.Bytes()))
		d.UseNumber()
		if err := d.Decode(&[]any{&line.function, &line.values}); err != nil {
			t.Fatal(err)
		}
		want[line.function] = append(want[line.function], line.values)
	}
	if len(want) == 0 {
		t.Fatalf("gdb prints nothing:\n%s", said)
	}
	return want
}

func quoted(s string) string { return "'" + s + "'" }

// valueSets are the values that a recording with these flags has of a function's calls, and its calls.
func valueSets(t *testing.T, name string, flags ...string) (sets [][]reel.Value, calls uint64) {
	t.Helper()
	program := realtest.Build(t, "arguments")
	file := recordWaiting(t, program, "300", slices.Concat([]string{"--lossless", "-m", filepath.Base(program)}, flags)...)
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, fn := range reel.Summarize(f, reel.SummaryOptions{}).Functions {
		if fn.Name == name {
			calls = fn.Calls
			if fn.Unfinished+fn.Implicit > 0 {
				t.Errorf("%+v", fn)
			}
		}
	}
	for _, thread := range f.Threads() {
		r := f.Values(thread.Key)
		for s := r.Next(); s != nil; s = r.Next() {
			if fn, _ := f.Function(s.Function); fn.Name == name {
				sets = append(sets, slices.Clone(s.Values))
			}
		}
	}
	return sets, calls
}

// Just the calls for which a condition holds are recorded, each whole; probes that are made on the first call have that one's values, too.
func TestConditionsChooseCalls(t *testing.T) {
	t.Parallel()
	needLive(t)
	sets, calls := valueSets(t, "integers", "--args", "integers(e, a, f, h)")
	want := 0
	for _, s := range sets {
		if int32(s[0].Bits) > -1000 && int8(s[1].Bits) <= 100 && uint32(s[2].Bits) != 7 && s[3].Bits > 1<<61 {
			want++
		}
	}
	if calls != 300 || len(sets) != 300 || want == 0 || want == 300 {
		t.Fatalf("%d calls, %d with values, %d with those wanted", calls, len(sets), want)
	}
	for _, flags := range [][]string{nil, {"--lazy"}} {
		got, calls := valueSets(t, "integers", append(flags, "--args", "integers(e, a, f)", "--if", "e > -1000 && a <= 100", "--if", "integers: f != 7 && h > 2305843009213693952")...)
		if calls != uint64(want) || len(got) != want {
			t.Errorf("%v: %d calls, %d with values, want %d", flags, calls, len(got), want)
		}
		for _, s := range got {
			if int32(s[0].Bits) <= -1000 || int8(s[1].Bits) > 100 {
				t.Errorf("%v: %+v was recorded", flags, s)
			}
		}
	}
}

// What can't be recorded as it was asked for ends with exit code 2, and says what there is.
func TestArgumentsThatThereAreNot(t *testing.T) {
	t.Parallel()
	needLive(t)
	program := realtest.Build(t, "arguments")
	p := realtest.Start(t, program, "1", "wait")
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--args", "integer"}, "near it are"},
		{[]string{"--args", "integers(x)"}, "it has a, b, c, d, e, f, g, h"},
		{[]string{"--args", "structs(c->argcc)"}, "it has argc, argv, name, next, weight, small"},
		{[]string{"--args", "structs(c"}, "matches nothing"},
		{[]string{"--ret", "got_long"}, "returns nothing"},
		{[]string{"--if", "integers: a > 128"}, "-128 to 127"},
		{[]string{"--if", "mixed: d > 1"}, "there are no conditions"},
		{[]string{"--if", "a > 1"}, "say of which function"},
		{[]string{"--if", "mixed: c == BLACK"}, `"BLACK" is no number`},
	} {
		file := filepath.Join(t.TempDir(), "no.reel")
		cmd := exec.Command(realtest.CallreelPath(t), slices.Concat([]string{"record", "-o", file, "-m", filepath.Base(program)}, c.flags, pidFlag(p))...)
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(out), c.want) {
			t.Errorf("%v: %v\n%s", c.flags, err, out)
		}
	}
}

// A dump has the values of its calls, as a recording has.
func TestADumpHasArguments(t *testing.T) {
	for name, flags := range map[string][]string{"all": nil, "long": {"--min", "1ns"}} { // which all calls are, but they are looked at
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needLive(t)
			dumpHasArguments(t, flags)
		})
	}
}

func dumpHasArguments(t *testing.T, flags []string) {
	program := realtest.Build(t, "arguments")
	p := realtest.Start(t, program, "300", "wait")
	r := realtest.StartRecording(t, slices.Concat(pidFlag(p), flags, []string{"-m", filepath.Base(program), "-f", "integers", "--args", "integers(e, h)",
		"--ret", "integers", "--when", "integers #150", "--keep", "20s"})...)
	p.Go()
	p.WaitLine("counted")
	file := waitDumps(t, r, 1)[0]
	stopArmed(t, r)
	p.Finish()
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sets, returns := 0, 0
	for _, thread := range f.Threads() {
		r := f.Values(thread.Key)
		for s := r.Next(); s != nil; s = r.Next() {
			if s.AtReturn {
				returns++
			} else if sets++; len(s.Values) != 2 || s.Values[1].State != reel.ValueKnown {
				t.Fatalf("%+v", s)
			}
		}
	}
	// Of the call that fired there may be only the entry, and one may be under way.
	if calls := reel.Summarize(f, reel.SummaryOptions{}).Calls; calls == 0 || uint64(sets) < calls-1 || uint64(returns) < calls-1 {
		t.Errorf("%d calls, %d with arguments, %d with a result", calls, sets, returns)
	}
}
