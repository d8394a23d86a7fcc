package reel

import "fmt"

// NameSource says who knew what a function is called.
type NameSource uint8

// The sources of names.
const (
	NamedByRecorder   NameSource = iota // the reel itself: what the recorder saw
	NamedBySymbols                      // a symbol table that the recorder didn't have
	NamedByDWARF                        // debug information on the machine where the reel is read
	NamedByDebuginfod                   // debug information that a server of such sent
	lastNameSource    = NamedByDebuginfod
)

// String returns the source as reports spell it; it is empty for the recorder.
func (s NameSource) String() string {
	switch s {
	case NamedByRecorder:
		return ""
	case NamedBySymbols:
		return "symbol table"
	case NamedByDWARF:
		return "DWARF"
	case NamedByDebuginfod:
		return "debuginfod"
	}
	return fmt.Sprintf("source %d", uint8(s))
}

// Naming is what a function is called, and where its source is.
type Naming struct {
	// Name is as Function.Name.
	Name string
	// From says who knew the name.
	From NameSource
	// File and Line are where the function begins; "" and 0 if that isn't known.
	File string
	Line uint32
}

// A Namer knows names of functions that the recorder didn't know. It may be asked by several goroutines at once.
type Namer interface {
	// Name completes what is known of functions of one image: known[i] is what the reel has of functions[i], and stays as
	// it is where nothing is better. Neither slice is kept.
	Name(im *Image, functions []*Function, known []Naming)
}

// NameBy has Function, Functions and Naming give the names that n knows. It is called before the File's other methods;
// what is in the file stays as it is.
func (f *File) NameBy(n Namer) { f.namer = n }

// NameAs has f named as other is: another state of the same reel.
func (f *File) NameAs(other *File) { f.namer = other.namer }

// Naming returns what the function with the ID is called and where it is, and false if the reel does not describe it.
func (f *File) Naming(id uint32) (Naming, bool) {
	fn, ok := f.recorded(id)
	if !ok {
		return Naming{}, false
	}
	return f.naming(id, fn), true
}

// naming is what the reel and the namer know of a function of the table.
func (f *File) naming(id uint32, fn *Function) Naming {
	own := f.own(id, fn)
	if f.namer == nil {
		return own
	}
	if im, ok := f.Image(fn.Image); ok {
		one := []Naming{own}
		f.namer.Name(&im, []*Function{fn}, one)
		return one[0]
	}
	return own
}

// namedAtOnce is how many functions a namer is asked for at once: asked for one by one, a million would cost twice as much.
const namedAtOnce = 256

// namings collects what is known of functions that one goroutine goes through.
type namings struct {
	f         *File
	functions [namedAtOnce]*Function
	known     [namedAtOnce]Naming
	n         int
}

// add adds a function of the table. It must not be called when namedAtOnce are there.
func (n *namings) add(id uint32, fn *Function) {
	n.functions[n.n], n.known[n.n] = fn, n.f.own(id, fn)
	n.n++
}

// ask has the namer complete what was added, and returns it. What is added next takes its place.
func (n *namings) ask() []Naming {
	list := n.known[:n.n]
	n.n = 0
	if n.f.namer == nil {
		return list
	}
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && n.functions[to].Image == n.functions[from].Image {
			to++
		}
		if im, ok := n.f.Image(n.functions[from].Image); ok {
			n.f.namer.Name(&im, n.functions[from:to], list[from:to])
		}
		from = to
	}
	return list
}
