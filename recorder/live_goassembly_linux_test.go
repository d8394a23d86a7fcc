package recorder_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// Assembly that is called by Go code only is traced; what leaves registers, or the flags, alone for other assembly that relies on it isn't.
func TestGoAssemblyThatKeepsRegistersIsLeftAlone(t *testing.T) {
	list := realtest.MustCallreel(t, "functions", "-f", "main.keeps", "-f", "main.doubles", "-f", "main.nothing", goTarget(t)).Stdout
	for name, want := range map[string]string{"keeps": "exit-site", "doubles": "- assembly", "nothing": "- assembly"} {
		if !slices.ContainsFunc(strings.Split(list, "\n"), func(line string) bool {
			return strings.HasSuffix(line, "!main."+name) && strings.Contains(line, want)
		}) {
			t.Errorf("main.%s should be %s:\n%s", name, want, list)
		}
	}
}
