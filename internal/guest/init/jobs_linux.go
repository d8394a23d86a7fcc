package main

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/guest"
)

const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// events tells the host; jobs write from several goroutines.
type events struct {
	mu  sync.Mutex
	out *json.Encoder
	err error
}

func (e *events) send(event guest.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = errors.Join(e.err, e.out.Encode(event))
}

// run unpacks the payload and runs its jobs one after the other.
func run() error {
	name, err := port()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	out := &events{out: json.NewEncoder(f)}
	if err := os.Setenv("PATH", path); err != nil {
		return err
	}
	jobs, err := payload()
	if err != nil {
		out.send(guest.Event{Kind: guest.Failed, Data: []byte(err.Error())})
		return err
	}
	out.send(guest.Event{Kind: guest.Up, Seconds: sinceBoot()})
	for i, job := range jobs {
		began := time.Now()
		status := runJob(job, writer{out, i})
		out.send(guest.Event{Kind: guest.Ended, Job: i, Status: status, Seconds: time.Since(began).Seconds()})
	}
	unix.Sync()
	out.send(guest.Event{Kind: guest.AllDone, Seconds: sinceBoot()})
	return out.err
}

func sinceBoot() float64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0
	}
	return time.Duration(now.Nano()).Seconds()
}

// A writer hands on what a job writes.
type writer struct {
	out *events
	job int
}

func (w writer) Write(p []byte) (int, error) {
	w.out.send(guest.Event{Kind: guest.Output, Job: w.job, Data: p})
	return len(p), nil
}

// afterKill is how long the output of a job that was ended may be held open by what it has started.
const afterKill = 5 * time.Second

func runJob(job guest.Job, out io.Writer) (status int) {
	ctx, cancel := context.WithTimeout(context.Background(), job.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, job.Args[0], job.Args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = job.Folder, out, out, afterKill
	cmd.Env = append([]string{"PATH=" + path, "HOME=/root", "USER=root", "TERM=dumb", "LANG=C.UTF-8"}, job.Env...)
	err := cmd.Run()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return guest.StatusTimeout
	case errors.As(err, &ended):
		if s := ended.Sys().(interface{ Signaled() bool }); s.Signaled() {
			return 128 + int(ended.Sys().(interface{ Signal() unix.Signal }).Signal())
		}
		return ended.ExitCode()
	case errors.Is(err, exec.ErrWaitDelay):
		return 0 // it has ended well, and left somebody behind
	case err != nil:
		fmt.Fprintf(out, "init: %v\n", err)
		return 127
	}
	return 0
}

// payload unpacks the host's tar file, whose names are paths from the root, and returns the jobs in it.
func payload() (jobs []guest.Job, err error) {
	name, err := disk(guest.DiskPayload)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	files := tar.NewReader(bufio.NewReaderSize(f, 1<<20))
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return jobs, nil
		}
		if err == nil && h.Name == guest.JobsFile {
			err = json.NewDecoder(files).Decode(&jobs)
		} else if err == nil {
			err = lay(h, files)
		}
		if err != nil {
			return nil, fmt.Errorf("payload: %w", err)
		}
	}
}

// lay makes one file of the payload.
func lay(h *tar.Header, data io.Reader) error {
	at := filepath.Join("/", h.Name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeSymlink {
		return os.Symlink(h.Linkname, at)
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, h.FileInfo().Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(f, data)
	return errors.Join(err, f.Close())
}
