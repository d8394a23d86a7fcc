package reelnames

import (
	"fmt"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/symbols"
)

func BenchmarkNaming(b *testing.B) {
	program := realtest.Build(b, "threads", "-Wl,--build-id")
	file, err := object.Open(program)
	realtest.Must(b, err)
	defer file.Close()
	m, _, err := symbols.BuildMap(b.Context(), file, symbols.BuildOptions{})
	realtest.Must(b, err)
	defer m.Close()
	var list []reel.Function
	m.Functions(func(start, _ uint64, _ string) bool {
		list = append(list, reel.Function{Name: fmt.Sprintf("threads+0x%x", start), Addr: start})
		return true
	})
	im := reel.Image{Path: program, ID: m.ID()}
	names := New(b.Context(), &symbols.Finder{})
	defer names.Close()
	functions, known := make([]*reel.Function, len(list)), make([]reel.Naming, len(list))
	named := 0
	for ; b.Loop(); named += len(list) {
		for i := range list {
			functions[i], known[i] = &list[i], reel.Naming{Name: list[i].Name}
		}
		names.Name(&im, functions, known)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(named), "ns/function")
}
