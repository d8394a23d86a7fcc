package server

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
)

// discarding takes an answer and keeps nothing.
type discarding struct {
	header http.Header
	status int
	bytes  int64
}

func (d *discarding) Header() http.Header    { return d.header }
func (d *discarding) WriteHeader(status int) { d.status = status }
func (d *discarding) Write(b []byte) (int, error) {
	d.bytes += int64(len(b))
	return len(b), nil
}

// cpuTime is what this process has used: on a busy machine the clock says nothing.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	realtest.Must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSymbolize answers captures of 1,000 frames whose map is in memory, by the handler itself; frames/s is of one core.
func BenchmarkSymbolize(b *testing.B) {
	dir := b.TempDir()
	var source strings.Builder
	source.WriteString("#include <map>\n#include <string>\n#include <vector>\nvolatile int sink;\n")
	for k := range 40 {
		fmt.Fprintf(&source, "struct T%d { int v; bool operator<(const T%d &o) const { return v < o.v; } };\n", k, k)
		fmt.Fprintf(&source, "void use%d(std::map<T%d, std::vector<std::string>> &m, T%d t) { m[t].push_back(std::to_string(t.v)); sink = m.size(); }\n", k, k, k)
	}
	source.WriteString("int main() {}\n")
	path := filepath.Join(dir, "prog.cc")
	realtest.Must(b, os.WriteFile(path, []byte(source.String()), 0o600))
	program := filepath.Join(dir, "prog")
	const id = "f0f1f2f3f4f5f6f7f8f9"
	realtest.Output(b, dir, realtest.GXX, "-g", "-O2", "-Wl,--build-id=0x"+id, "-o", program, path)
	r := start(b, folder(b), nil)
	r.push(b, id, program, http.StatusCreated)
	im, err := object.Open(program)
	realtest.Must(b, err)
	defer im.Close()
	m, _, err := symbols.BuildMap(b.Context(), im, symbols.BuildOptions{})
	realtest.Must(b, err)
	var all []uint64
	m.Functions(func(start, end uint64, _ string) bool {
		for at := start; at < end; at += 16 {
			all = append(all, at)
		}
		return true
	})
	const frames = 1000
	var addresses []uint64
	for k := range frames {
		addresses = append(addresses, all[k*len(all)/frames])
	}
	body := capture(id, addresses...)
	h := r.Handler()
	b.ReportAllocs()
	before := cpuTime(b)
	b.ResetTimer()
	for range b.N {
		request := httptest.NewRequest(http.MethodPost, "/symbolize", bytes.NewReader(body))
		request.Header.Set("Authorization", "Bearer "+readToken)
		w := &discarding{header: http.Header{}}
		h.ServeHTTP(w, request)
		if w.status > http.StatusOK || w.bytes < 100*frames {
			b.Fatalf("%d, %d bytes", w.status, w.bytes)
		}
		b.SetBytes(w.bytes)
	}
	b.ReportMetric(float64(frames*b.N)/(cpuTime(b)-before).Seconds(), "frames/CPU-s")
}
