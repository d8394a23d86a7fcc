package sampler_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/sampler"
)

// A process that makes code, says its name, and makes other code in its place again and again.
const remaking = `
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
int main(void) {
  static const unsigned char spin[] = {0xb8, 0, 0, 0, 1, 0xff, 0xc8, 0x75, 0xfc, 0xc3}; // some ms
  unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char name[64];
  sprintf(name, "/tmp/perf-%d.map", getpid());
  FILE *map = fopen(name, "w");
  for (int i = 0;; i++) {
    memcpy(code, spin, sizeof spin);
    fprintf(map, "%lx 100 made%d\n", (unsigned long)code, i);
    fflush(map);
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
      ((void (*)(void))code)();
      clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - from.tv_sec < 2);
  }
}
`

// Code that was made where other code was has its own name from then on, and what was sampled before keeps the other's.
func TestCodeInThePlaceOfOtherCodeIsNamedByItsTime(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	path := filepath.Join(t.TempDir(), "remaking")
	realtest.Must(t, os.WriteFile(path+".c", []byte(remaking), 0o600))
	realtest.Must(t, exec.Command(realtest.Tool(t, realtest.GCC), "-O1", "-o", path, path+".c").Run())
	process := realtest.StartCommand(t, exec.Command(path))
	list := fmt.Sprintf("/tmp/perf-%d.map", process.Pid())
	defer os.Remove(list)
	until(t, "in "+list, func() bool { text, err := os.ReadFile(list); return err == nil && len(text) > 0 })
	p, err := sampler.Sample(t.Context(), sampler.SampleOptions{PID: process.Pid(), Duration: 5 * time.Second})
	realtest.Must(t, err)
	defer p.Close()
	samples := map[string]uint64{}
	for _, s := range p.Stacks {
		for _, id := range s.Frames {
			if name := p.Locations[id].Name; strings.HasPrefix(name, "made") {
				samples[name] += s.Count
				break
			}
		}
	}
	if len(samples) < 2 {
		t.Errorf("%v", samples)
	}
}
