package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/internal/outfile"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/why"
)

// whyWriter writes why a dump's call was slow beside the dump, one after the other and beside the recording.
type whyWriter struct {
	files  chan string
	ended  chan struct{}
	status *status
}

// maxUnanswered is how many dumps may wait for their answers. Further ones get none: callreel why gives it later.
const maxUnanswered = 64

func newWhyWriter(ctx context.Context, status *status) *whyWriter {
	w := &whyWriter{files: make(chan string, maxUnanswered), ended: make(chan struct{}), status: status}
	go func() {
		defer close(w.ended)
		for file := range w.files {
			if err := writeWhy(ctx, file); err != nil {
				status.notice("%s: no answer is written: %v", file, err)
			}
		}
	}()
	return w
}

// dumped asks for the answer to a dump.
func (w *whyWriter) dumped(file string) {
	select {
	case w.files <- file:
	default:
		w.status.notice("%s: no answer is written, %d dumps wait for theirs", file, maxUnanswered)
	}
}

// finish waits for all answers.
func (w *whyWriter) finish() {
	close(w.files)
	<-w.ended
}

// writeWhy writes the answer to one dump. A dump that wasn't made for a call gets none. A recording that has been ended by a signal still gets
// its answers.
func writeWhy(ctx context.Context, file string) error {
	f, err := reel.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() // only read from
	r, err := why.Explain(context.WithoutCancel(ctx), f, why.Options{Name: demangle.Name, Workers: 1})
	if errors.Is(err, why.ErrNotChosen) || errors.Is(err, why.ErrNoCall) {
		return nil
	}
	if err != nil {
		return err
	}
	return outfile.Write(strings.TrimSuffix(file, ".reel")+".txt", outfile.Options{Force: true}, func(w io.Writer) error {
		_, err := io.WriteString(w, printableLines(r.Text()))
		return err
	})
}
