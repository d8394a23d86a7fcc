package linkmap

import (
	"encoding/binary"

	"github.com/callreel/callreel/process"
)

// Entry is an image of the loader's list, as the process says.
type Entry struct {
	Slide   uint64 // load address minus link address
	Dynamic uint64 // address of its dynamic section
}

const linkDynamic = 16

// Entries reads the whole list, in its order: that in which the images of a program's start are searched for symbols, then what was loaded
// later. There are none where there is no list; of one that can't be read to its end there are those before.
func Entries(p *process.Process) (list []Entry) {
	debug, err := FindDebug(p)
	if err != nil || debug == 0 {
		return nil
	}
	le := binary.LittleEndian
	var head [DebugSize]byte
	if _, err := p.ReadAt(head[:], debug); err != nil {
		return nil
	}
	var node [linkSize]byte
	seen := map[uint64]bool{}
	for at := le.Uint64(head[debugMap:]); at != 0 && !seen[at] && len(list) < maxLinks; at = le.Uint64(node[linkNext:]) {
		seen[at] = true
		if _, err := p.ReadAt(node[:], at); err != nil {
			break
		}
		list = append(list, Entry{Slide: le.Uint64(node[:]), Dynamic: le.Uint64(node[linkDynamic:])})
	}
	return list
}
