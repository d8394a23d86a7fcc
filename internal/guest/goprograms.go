package guest

import (
	"path/filepath"
	"strings"
)

// GoProgramsVar names the folder of programs that were built before, where there is no Go: the guest has none.
const GoProgramsVar = "CALLREEL_GO_PROGRAMS"

// EmulatedVar is set in the guest: an emulated processor takes a hundred times as long for what the kernel does between one reading of a clock
// and the next.
const EmulatedVar = "CALLREEL_EMULATED"

// GoProgram is where in such a folder a program of testdata/targets is that go build has made with flags.
func GoProgram(folder, target string, flags []string) string {
	name := strings.Join(append([]string{target}, flags...), " ")
	return filepath.Join(folder, strings.NewReplacer("/", "_", " ", "_").Replace(name))
}
