package export

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/callreel/callreel/reel"
)

const (
	// maxNames bounds how many names are kept ready: a hostile reel can name functions by the billion.
	maxNames = 1 << 18
	// maxName is how long a name may be, in bytes: viewers choke on longer ones, and some formats repeat it with each call. C++ has names
	// of some thousand.
	maxName = 8 << 10
	// otherFunctions stands for those beyond maxNames that the reel does not describe.
	otherFunctions = "[other functions]"
)

// functionName is what the function is called, and the base name of its image's
// file, which is empty where none is known. Both may hold any bytes.
func (w *walk) functionName(id uint32) (name, module string) {
	fn, known := w.f.Function(id)
	name = fn.Name
	if !known || name == "" {
		name = fmt.Sprintf("function #%d", id)
	}
	if w.opt.Name != nil {
		name = w.opt.Name(name)
	}
	if len(name) > maxName {
		name = fmt.Sprintf("%s… #%d", cut(name, maxName), id) // its ID keeps it apart from others that begin alike
	}
	return name, w.module(fn.Image)
}

func (w *walk) module(id reel.ImageID) string {
	m, ok := w.f.Image(id)
	if !ok || m.Path == "" {
		return ""
	}
	return cut(path.Base(m.Path), maxName)
}

// line is where a function is in its source.
func (w *walk) line(id uint32) (file string, line uint32) {
	if !w.opt.Lines {
		return "", 0
	}
	n, _ := w.f.Naming(id)
	return cut(n.File, maxName), n.Line
}

// cut shortens a text to at most n bytes, at a character's end.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// validText is a text for formats that have Unicode only. Each byte that isn't
// becomes U+FFFD, as in JSON; so does NUL, where trace_processor ends texts and
// confuses those behind.
func validText(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r == 0 {
			return utf8.RuneError
		}
		return r
	}, s)
}
