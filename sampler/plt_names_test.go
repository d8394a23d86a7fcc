package sampler

import (
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
)

func TestPLTStubsHaveTheNamesThatObjdumpGivesThem(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.Objdump)
	stub := regexp.MustCompile(`(?m)^([0-9a-f]+) <([^>]+@plt)>:$`)
	pads := []string{"-fcf-protection=full", "-Wl,-z,ibtplt"}
	if runtime.GOARCH == "arm64" {
		pads = []string{"-mbranch-protection=standard", "-Wl,-z,force-bti"}
	}
	for name, flags := range map[string][]string{"lazy": {"-Wl,-z,lazy"}, "bound": {"-Wl,-z,now"}, "with landing pads": pads} {
		t.Run(name, func(t *testing.T) {
			path := realtest.Build(t, "shapes_of_frames", flags...)
			said, err := exec.Command("objdump", "-d", path).Output()
			if err != nil {
				t.Fatal(err)
			}
			file, err := object.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			var names stubNames
			found := 0
			for _, m := range stub.FindAllStringSubmatch(string(said), -1) {
				addr, err := strconv.ParseUint(m[1], 16, 64)
				if err != nil {
					t.Fatal(err)
				}
				for _, at := range []uint64{addr, addr + 6} {
					if got := names.find(file, at); got != m[2] {
						t.Errorf("%#x is %q, objdump has %q", at, got, m[2])
					}
				}
				found++
			}
			if found < 4 {
				t.Errorf("objdump shows %d stubs", found)
			}
		})
	}
}
