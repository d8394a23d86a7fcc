package process

import (
	"context"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func BenchmarkStop(b *testing.B) {
	g := startTarget(b, build(b, "idle.c", "gcc"), "16")
	p, err := Open(g.pid())
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	b.Run("17 idle threads", func(b *testing.B) {
		for b.Loop() {
			if _, err := p.Stop(context.Background(), StopOptions{}, doNothing); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("and a system call", func(b *testing.B) {
		for b.Loop() {
			_, err := p.Stop(context.Background(), StopOptions{}, func(s *Stopped) error {
				_, err := s.Syscall(unix.SYS_GETPID)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("and eight in a batch", func(b *testing.B) {
		calls := make([]Call, MaxBatch)
		for i := range calls {
			calls[i].Number = unix.SYS_GETPID
		}
		for b.Loop() {
			_, err := p.Stop(context.Background(), StopOptions{}, func(s *Stopped) error {
				_, err := s.SyscallBatch(calls)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	g.finish()
}

// What a stop does with many threads: all of it counts, the look before it and the
// standing itself ("stood").
func BenchmarkStopOfManyThreads(b *testing.B) {
	g := startTarget(b, build(b, "idle.c", "gcc"), "2000")
	p, err := Open(g.pid())
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	for name, work := range map[string]func(*Stopped) error{
		"nothing": doNothing,
		"ThreadID": func(s *Stopped) error {
			_, err := s.TIDOffset()
			return err
		},
		"a system call": func(s *Stopped) error {
			_, err := s.Syscall(unix.SYS_GETPID)
			return err
		},
		"seccomp of each": func(s *Stopped) error {
			for _, t := range s.Threads() {
				if _, err := t.SeccompMode(); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		b.Run(name, func(b *testing.B) {
			var stopped []time.Duration
			for b.Loop() {
				took, err := p.Stop(context.Background(), StopOptions{Timeout: time.Minute}, work)
				if err != nil {
					b.Fatal(err)
				}
				stopped = append(stopped, took)
			}
			slices.Sort(stopped)
			b.ReportMetric(float64(stopped[len(stopped)/2].Nanoseconds()), "stood-ns/op")
		})
	}
	g.finish()
}

func BenchmarkPrepareSyscalls(b *testing.B) {
	g := startTarget(b, build(b, "idle.c", "gcc"))
	for b.Loop() {
		p, err := Open(g.pid())
		if err != nil {
			b.Fatal(err)
		}
		if err := p.PrepareSyscalls(); err != nil {
			b.Fatal(err)
		}
		p.Close()
	}
	g.finish()
}

func BenchmarkMaps(b *testing.B) {
	text := []byte{}
	for range 2000 {
		text = append(text, "7f0123456000-7f0123457000 r-xp 00001000 fd:01 123456                     /usr/lib/x86_64-linux-gnu/libc.so.6\n"...)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseMaps(text); err != nil {
			b.Fatal(err)
		}
	}
}
