package target

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/text"
)

// Pages of a library that are its file's needn't be read again, as long as the file is what it was.
func TestPagesThatAreTheirFilesAreNotReadAgain(t *testing.T) {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "library")
	if err := os.WriteFile(path, program, 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	var code *object.Segment
	for _, s := range o.Segments() {
		if s.Type == object.SegmentLoad && s.Perm&object.PermX != 0 {
			code = &s
			break
		}
	}
	const slide, pages = 1 << 40, 4
	start := (slide + code.Addr) &^ (text.PageSize - 1)
	m := process.Mapping{Start: start, End: start + pages*text.PageSize, Inode: 1, Path: path, Offset: code.Off &^ (text.PageSize - 1)}
	im := &mapped.Image{Object: o, Slide: slide, Lo: m.Start, Hi: m.End, Text: []process.Mapping{m}, Unloadable: true}
	s := &Target{Images: []*mapped.Image{im}}
	file, err := im.FileBytes(m.Start-slide, m.Size())
	if err != nil {
		t.Fatal(err)
	}
	var all []text.Page
	for i := range pages {
		all = append(all, text.Page{Addr: m.Start + uint64(i)*text.PageSize, Old: slices.Clone(file[i*text.PageSize:][:text.PageSize])})
	}
	all[2].Old[5]++ // somebody's breakpoint
	look := func() (list []bool) {
		doubtful := s.doubtful()
		for i := range all {
			list = append(list, doubtful(&all[i]))
		}
		return list
	}
	want := func(when string, list ...bool) {
		t.Helper()
		if got := look(); !slices.Equal(got, list) {
			t.Errorf("%s: %v are looked at again, want %v", when, got, list)
		}
	}
	want("before they were compared", true, true, true, true)
	other := m
	other.Inode++
	s.markFiled(all, []process.Mapping{other}, text.OldSide)
	want("another file is mapped", true, true, true, true)
	s.markFiled(all, []process.Mapping{m}, text.OldSide)
	want("afterwards", false, false, true, false)
	im.Unloadable = false
	want("it can't go", false, false, false, false)
	im.Unloadable = true
	if err := os.WriteFile(path, program[:len(program)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	want("the file has changed", true, true, true, true)
}
