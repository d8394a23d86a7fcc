package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/callreel/callreel/internal/outfile"
)

// exportParts makes the files of an export that is split. They get their names when all are whole: after a failure none is left, and none
// that was there has been replaced.
type exportParts struct {
	reel, output string
	options      outfile.Options
	counted      func(io.Writer) io.Writer
	files        []*outfile.File
}

// name is that of a part, from 1.
func (p *exportParts) name(part int) string {
	ext := filepath.Ext(p.output)
	return fmt.Sprintf("%s-%03d%s", strings.TrimSuffix(p.output, ext), part, ext)
}

// next makes a part.
func (p *exportParts) next(part int) (io.WriteCloser, error) {
	name := p.name(part)
	if sameFile(p.reel, name) {
		return nil, usageError("callreel export: %s is the reel itself; give -o another file", name)
	}
	f, err := outfile.Begin(name, p.options)
	if err != nil {
		return nil, outputError(name, err)
	}
	p.files = append(p.files, f)
	return struct {
		io.Writer
		io.Closer
	}{p.counted(f), f.File}, nil
}

// done puts the files in their places, or takes them away if there was an error.
func (p *exportParts) done(err error) error {
	for _, f := range p.files {
		if err == nil {
			err = outputError(f.Name(), f.Finish())
		} else {
			err = errors.Join(err, f.Abandon())
		}
	}
	return err
}
