package sampler

import (
	"errors"
	"fmt"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
)

// sampledFiles are the files of all processes that are sampled: a file that several of
// them have loaded is opened once, and named once.
type sampledFiles struct {
	maxFrames int
	memory    *object.Allowance
	open      map[fileKey]*sampledFile
	problems  []error
}

type fileKey struct {
	dev, inode uint64
	path       string
	special    string
}

type sampledFile struct {
	image *object.Image
	err   error
	first *Image // of the first process that has it
}

func newSampledFiles(maxFrames int, memory *object.Allowance) *sampledFiles {
	if memory == nil {
		memory = object.NewAllowance(0)
	}
	return &sampledFiles{maxFrames: maxFrames, memory: memory, open: map[fileKey]*sampledFile{}}
}

func keyOfFile(im *Image) fileKey {
	r := &im.regions[0]
	return fileKey{r.dev, r.inode, r.path, r.special}
}

// of returns the entry of an image's file.
func (f *sampledFiles) of(im *Image) *sampledFile {
	key := keyOfFile(im)
	file := f.open[key]
	if file == nil {
		file = &sampledFile{}
		f.open[key] = file
	}
	return file
}

// first returns the image that stands for an image in all processes.
func (f *sampledFiles) first(im *Image) *Image {
	if im == nil {
		return nil
	}
	file := f.of(im)
	if file.first == nil || file.first.file == nil && im.file != nil {
		file.first = im
	}
	return file.first
}

// opener opens the images of a process, which may be nil.
func (f *sampledFiles) opener(p *process.Process) func(*Image) (*object.Image, error) {
	return func(im *Image) (*object.Image, error) {
		file := f.of(im)
		if file.image == nil && (file.err == nil || errors.Is(file.err, errGone)) {
			known := file.err != nil
			if file.image, file.err = openSampled(p, im, f.memory); file.err != nil && !known {
				f.problems = append(f.problems, fmt.Errorf("%s: %w", im.Path, file.err))
			}
		}
		if file.image == nil {
			return nil, file.err
		}
		if _, ok := slideOf(file.image, im.regions); !ok {
			return nil, errNoSegment // Image would close the file, which others use
		}
		return file.image, nil
	}
}

var errGone = errors.New("the process has ended before the file could be opened")

// openSampled opens the very file that is mapped. That of a process which has ended is
// looked for under its name, if it still is the same file there.
func openSampled(p *process.Process, im *Image, memory *object.Allowance) (*object.Image, error) {
	r := &im.regions[0]
	if p != nil {
		l := live{p: p, o: Options{Memory: memory}}
		image, err := l.open(im)
		if err == nil || p.Alive() {
			return image, err
		}
	}
	if r.special == "" && !im.Deleted && isFile(r.path, r.inode) {
		return object.Opener{Memory: memory}.Open(r.path)
	}
	return nil, errGone
}

// close closes all files.
func (f *sampledFiles) close() error {
	var errs []error
	for _, file := range f.open {
		if file.image != nil {
			errs = append(errs, file.image.Close())
		}
	}
	f.open = map[fileKey]*sampledFile{}
	return errors.Join(errs...)
}
