package symbolize

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/symbols"
)

// compile runs a compiler in a folder of its own on one source and returns the output's path.
func compile(t testing.TB, by realtest.Capability, name, source string, args ...string) string {
	t.Helper()
	realtest.Need(t, by)
	dir := t.TempDir()
	realtest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600))
	out := filepath.Join(dir, strings.TrimSuffix(name, filepath.Ext(name)))
	realtest.Output(t, dir, by, append(append([]string{}, args...), "-o", out, filepath.Join(dir, name))...)
	return out
}

// local is a Source of the files where the captures say they are.
func local(t testing.TB) *Files {
	f := &Files{Finder: &symbols.Finder{}}
	t.Cleanup(func() { realtest.Must(t, f.Close()) })
	return f
}

// truth asks llvm-symbolizer what is at link addresses: per address the frames as
// "function file:line", innermost first.
func truth(t testing.TB, image string, addrs []uint64, args ...string) [][]string {
	t.Helper()
	realtest.Need(t, realtest.Symbolizer)
	path, err := realtest.Symbolizer.Find()
	realtest.Must(t, err)
	var in strings.Builder
	for _, a := range addrs {
		fmt.Fprintf(&in, "%#x\n", a)
	}
	cmd := exec.Command(path, append(args, "--obj="+image)...)
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	realtest.Must(t, err)
	var all [][]string
	for block := range strings.SplitSeq(strings.TrimSuffix(string(out), "\n\n"), "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		var frames []string
		for k := 0; k+1 < len(lines); k += 2 {
			place := lines[k+1][:strings.LastIndexByte(lines[k+1], ':')] // without the column
			frames = append(frames, lines[k]+" "+place)
		}
		all = append(all, frames)
	}
	if len(all) != len(addrs) {
		t.Fatalf("llvm-symbolizer answered %d of %d addresses", len(all), len(addrs))
	}
	return all
}

// frames is what was found, as truth has it.
func frames(calls []Call) []string {
	var list []string
	for _, c := range calls {
		place := "??:0"
		if c.File != "" {
			place = fmt.Sprintf("%s:%d", c.File, c.Line)
		}
		list = append(list, c.Function+" "+place)
	}
	return list
}
