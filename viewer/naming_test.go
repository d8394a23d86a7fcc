package viewer

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// A name is in a reel once, and in an answer as often as what it names: a small reel must not make large answers.
func TestLongNamesDoNotMakeAnswersLarge(t *testing.T) {
	const functions, long = 6000, 1 << 20
	names := make([]string, functions)
	for i := range names {
		names[i] = fmt.Sprint("f", i)
	}
	names[0] = strings.Repeat("\u00e9", long)
	path := filepath.Join(t.TempDir(), "long.reel")
	w := madereel.Create(t, path, reel.Header{Clock: madereel.Nanoseconds(1000)}, reel.Image{Path: "/" + strings.Repeat("m", long)}, names...)
	var events []reel.Event
	for i := range uint32(functions) {
		events = append(events, reel.Entry(2000+uint64(i), 0x7fff0000-16*i, i+1))
	}
	at := uint64(100_000)
	for range functions { // the one with the long name is called below all others, over and over
		events = append(events, reel.Entry(at, 0x7fff0000-16*functions, 1), reel.Exit(at+5, 0x7fff0000-16*functions, 1))
		at += 10
	}
	thread(t, w, strings.Repeat("t", long), events...)
	realtest.Must(t, w.Close())
	c := serveReels(t, path, path)
	ids := make([]string, maxNames)
	for i := range ids {
		ids[i] = fmt.Sprint(i + 1)
	}
	for _, request := range []string{
		"functions", "tree?limit=50000&depth=100000", "find?q=*&limit=5000", "lanes", "calls?f=1&limit=5000", "diff", "speedscope",
		"names?ids=" + strings.Join(ids, ","), fmt.Sprintf("call?lane=0&row=%d&at=%d", functions, 100_002-1000),
	} {
		body := c.bytes(request)
		if len(body) > 2*maxNaming || !json.Valid(body) {
			t.Errorf("%.40s: %d bytes: %.100s", request, len(body), body)
		}
	}
	if got := ask[functionsAnswer](c, "functions?limit=5"); len(got.Functions) != 5 || got.Functions[0].Module != strings.Repeat("m", 4095) {
		t.Errorf("%d functions, the first of %.40s", len(got.Functions), got.Functions[0].Module)
	}
	if got := ask[map[string]nameJSON](c, "names?ids=1")["1"]; got.Name != strings.Repeat("\u00e9", maxName/2)+"… #1" || got.Linkage != got.Name {
		t.Errorf("the long name is %d bytes: %.20s", len(got.Name), got.Name)
	}
	deepest := ask[callJSON](c, fmt.Sprintf("call?lane=0&row=%d&at=%d", functions, 100_002-1000))
	if n := len(deepest.Callers); n == 0 || deepest.Callers[n-1].Name != fmt.Sprint("f", functions-1) {
		t.Errorf("%d callers", n)
	}
}
