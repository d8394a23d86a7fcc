package viewer

import (
	"fmt"
	"path"
	"unicode/utf8"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/reel"
)

// Bounds of names. A reel may have a name of any length, and have it once; answers may repeat it for each of a million calls.
const (
	// maxName is how long a name may be, in bytes; C++ has names of some thousand. Exports have the same.
	maxName = 8 << 10
	// maxLaneName is that of a thread, which all its goroutines have; Linux has 15.
	maxLaneName = 256
	// maxNaming is how many bytes of names are in one answer. Functions beyond it have their IDs for names.
	maxNaming = 16 << 20
)

// nameOf returns the name and the module of a function, as `callreel report` has them but for their length.
func nameOf(f *reel.File, id uint32) (name, module string) {
	fn, known := f.Function(id)
	if !known {
		return numbered(id), ""
	}
	return cutName(demangle.Name(fn.Name), id), moduleOf(f, fn.Image)
}

func numbered(id uint32) string { return fmt.Sprintf("function #%d", id) }

// cutName shortens a function's name; its ID then keeps it apart from others that begin alike.
func cutName(name string, id uint32) string {
	if len(name) <= maxName {
		return name
	}
	return fmt.Sprintf("%s… #%d", cut(name, maxName), id)
}

// cut shortens a text to at most n bytes, at a character's end.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

func moduleOf(f *reel.File, id reel.ImageID) string {
	if im, ok := f.Image(id); ok {
		return path.Base(im.Path)
	}
	return ""
}

// naming gives the functions in one answer their names.
type naming struct {
	f      *reel.File
	budget int // bytes
	known  map[uint32]named
}

func newNaming(f *reel.File) *naming {
	return &naming{f: f, budget: maxNaming, known: map[uint32]named{}}
}

// of names a function by its ID.
func (n *naming) of(id uint32) (name, module string) {
	k, known := n.known[id]
	if !known {
		k.name, k.module = nameOf(n.f, id)
		n.known[id] = k
	}
	return n.given(id, k.name, k.module)
}

// given is for names that are known from elsewhere.
func (n *naming) given(id uint32, name, module string) (string, string) {
	name = cutName(name, id)
	if n.budget -= len(name) + len(module); n.budget < 0 {
		return numbered(id), ""
	}
	return name, module
}
