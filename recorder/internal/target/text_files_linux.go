package target

import (
	"bytes"
	"errors"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// believeFiles omits the patches whose old bytes aren't those of the file that is mapped there: no site is made where text differs
// from its file, so no recorder has noted them. Where a file can't be read any more a signed note is believed.
func (l *Remains) believeFiles(p *process.Process, maps []process.Mapping) error {
	files := &textFiles{p: p, maps: maps}
	defer files.close()
	if err := l.believeSemaphores(files); err != nil {
		return err
	}
	all := l.Record.Patches
	var kept []stub.Patch // instead of all, once one is omitted: others may have the same list
	for i := range all {
		patch := &all[i]
		want, err := files.bytes(patch.Addr, len(patch.Old()))
		if err != nil {
			return err
		}
		believed := want == nil && l.Signed || want != nil && bytes.Equal(want, patch.Old())
		switch {
		case !believed && kept == nil:
			kept = append(make([]stub.Patch, 0, len(all)), all[:i]...)
		case believed && kept != nil:
			kept = append(kept, *patch)
		}
	}
	if kept != nil {
		l.Record.Patches = kept
	}
	return nil
}

// textFiles reads the files behind a process's text. The files stay open.
type textFiles struct {
	p      *process.Process
	maps   []process.Mapping
	images map[FileID]*mapped.Image // nil for one that can't be read
	last   *process.Mapping
	data   []byte // of the last mapping; nil if it can't be read
}

type FileID struct{ Dev, Inode uint64 }

// bytes is what the file has for n bytes of text, nil if there is none, or it can't be read.
func (f *textFiles) bytes(addr uint64, n int) ([]byte, error) {
	if f.last == nil || !f.last.Contains(addr) {
		m := process.FindMapping(f.maps, addr)
		if m == nil || m.Inode == 0 || m.Perm&process.PermExec == 0 || m.Perm&(process.PermShared|process.PermWrite) != 0 {
			return nil, nil
		}
		im, err := f.image(m)
		if err != nil {
			return nil, err
		}
		f.last, f.data = m, nil
		if im != nil {
			if data, err := im.FileBytes(m.Start-im.Slide, m.Size()); err == nil {
				f.data = data
			}
		}
	}
	off := addr - f.last.Start
	if off+uint64(n) > uint64(len(f.data)) {
		return nil, nil
	}
	return f.data[off:][:n], nil
}

func (f *textFiles) image(m *process.Mapping) (*mapped.Image, error) {
	id := FileID{m.Dev, m.Inode}
	if im, known := f.images[id]; known {
		return im, nil
	}
	im, err := mapped.OpenImage(f.p, *m, f.maps, nil)
	if errors.Is(err, process.ErrNoProcess) {
		return nil, err
	}
	if err != nil { // it is gone, or has been changed
		im = nil
	}
	if f.images == nil {
		f.images = map[FileID]*mapped.Image{}
	}
	f.images[id] = im
	return im, nil
}

func (f *textFiles) close() {
	for _, im := range f.images {
		if im != nil {
			im.Close()
		}
	}
}

// verifyPatches compares the text of every image that was patched with its file.
func verifyPatches(p *process.Process, patches []stub.Patch) (bool, error) {
	maps, err := p.Maps()
	if err != nil {
		return false, err
	}
	type file struct{ dev, inode uint64 }
	seen := map[file]bool{}
	for i := range patches {
		m := process.FindMapping(maps, patches[i].Addr)
		if m == nil || m.Inode == 0 || m.Perm&process.PermExec == 0 || seen[file{m.Dev, m.Inode}] {
			continue // its library has gone
		}
		seen[file{m.Dev, m.Inode}] = true
		im, err := mapped.OpenImage(p, *m, maps, nil)
		if err != nil {
			return false, err
		}
		if im == nil {
			continue
		}
		ok, err := im.VerifyText(p)
		im.Close()
		if err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}
