package recorder

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/linkmap"
)

// A look at the loader's list, and at the mappings, of a python with some
// 30 libraries.
func BenchmarkLookForLibraries(b *testing.B) {
	realtest.Need(b, realtest.LivePtrace, realtest.Python3)
	target := realtest.Python(b, `
import select, sys, ssl, sqlite3, lzma, bz2, decimal, multiprocessing, curses, readline, hashlib, json, zlib
print("ready", flush=True)
sys.stdin.read()
print("python ok", flush=True)
`)
	p, err := process.Open(target.Pid())
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	l := linkmap.Find(p)
	if l == nil {
		b.Fatal("no list")
	}
	l.Follow()
	b.Run("list", func(b *testing.B) {
		cpu := spent(b)
		for b.Loop() {
			if l.Changed() {
				b.Fatal("it has changed")
			}
		}
		b.ReportMetric(float64(spent(b)-cpu)/float64(b.N), "cpu-ns/op")
	})
	b.Run("maps", func(b *testing.B) {
		cpu := spent(b)
		for b.Loop() {
			if _, err := p.Maps(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(spent(b)-cpu)/float64(b.N), "cpu-ns/op")
	})
	target.Finish()
}

// spent is this process's: on a busy machine the clock says little.
func spent(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
