package symbols

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io/fs"
	"time"

	"github.com/callreel/callreel/internal/ownfolder"
	"github.com/callreel/callreel/object"
)

// An ID is what a file says of itself, and anybody can make a file that says the same as
// libc. So what is made of a file on the way is kept under its content as well, and only
// what the user has asked to be kept for an ID serves all images of that ID whose code lies
// at the same places.

// layoutOf is a number that images have in common whose sections of code have the same
// names, addresses and sizes: an image, the same before it was stripped, and its debug
// file. It is 0 for images without such sections.
func layoutOf(im *object.Image) uint64 {
	h := sha256.New()
	le := binary.LittleEndian
	h.Write(le.AppendUint16(nil, uint16(im.Arch)))
	any := false
	sections := im.Sections()
	for k := range sections {
		s := &sections[k]
		if !s.Alloc() || !s.Executable() {
			continue
		}
		any = true
		b := append([]byte(s.Segment), 0)
		b = append(append(b, s.Name...), 0)
		h.Write(le.AppendUint64(le.AppendUint64(b, s.Addr), s.Size))
	}
	if !any {
		return 0
	}
	return max(le.Uint64(h.Sum(nil)), 1)
}

// A contentKey names the content of a file: 32 hexadecimal digits, half a SHA-256, which
// nobody can meet with another file. "" is no key.
type contentKey string

// keyOf computes the key of an image's content, "" if it can't be read. It reads all of the file.
func keyOf(im *object.Image) contentKey {
	h := sha256.New()
	if _, err := im.WriteTo(h); err != nil {
		return ""
	}
	return contentKey(hex.EncodeToString(h.Sum(nil)[:16]))
}

// pathKey names a path. It is told from the keys of contents by its first letter.
func pathKey(path string) contentKey {
	sum := sha256.Sum256([]byte(path))
	return contentKey("p" + hex.EncodeToString(sum[:16]))
}

// settled is how long a file must not have changed for its times to tell one content from
// another: they go by the kernel's ticks, and a change within the same tick would not show.
const settled = 2 * time.Second

// trusted says whether only root and this user can have written all of these files.
func trusted(files []fs.FileInfo) bool {
	for _, info := range files {
		if !ownfolder.Trusted(info) {
			return false
		}
	}
	return len(files) > 0
}

// trustedImage says whether only root and this user can have written an image's file, now
// and while it is in use. name is where it was opened.
func trustedImage(im *object.Image) bool {
	return ownfolder.Trusted(im.FileInfo()) && ownfolder.Honest(im.Name(), im.FileInfo())
}
