package demangle

// Names come from whoever made the file that they stand in, and a short one can stand for
// one of exponential length, or for none after exponential work. So what is done for a name
// is counted, in every language by the same count: one step for each part of the name that is
// read or written, and one for each 64 bytes that are copied. Steps take some ten
// nanoseconds.
const (
	// maxInput bounds the names that are looked at, in bytes. The longest of LLVM
	// and of large template-heavy programs are a tenth of it.
	maxInput = 16 << 10

	// maxOutput bounds what is made of a name, in bytes. Substitutions let a short name
	// stand for one of exponential length.
	maxOutput = 256 << 10

	// The steps for a name of n bytes are at most baseSteps + n*stepsPerByte. Of the million
	// names of LLVM, Clang, Node and rustc none needs a sixth of that.
	baseSteps    = 1 << 13
	stepsPerByte = 32

	// maxDepth bounds how deeply the parts of a name are nested, as it is read and as it
	// is written.
	maxDepth = 1 << 10
)

// A budget is what may still be spent on one name.
type budget struct {
	spent, limit int
	depth        int
	over         bool // something was refused; what has been made is not the name
}

func newBudget(name string) budget { return budget{limit: baseSteps + len(name)*stepsPerByte} }

// spend takes n steps from the budget, and says whether they are there.
func (b *budget) spend(n int) bool {
	b.spent += n
	if b.spent > b.limit {
		b.over = true
	}
	return !b.over
}

// enter takes a step into a part of the name; where it is refused the caller gives up, and
// does not leave.
func (b *budget) enter() bool {
	if b.depth >= maxDepth {
		b.over = true
	}
	if !b.spend(1) {
		return false
	}
	b.depth++
	return true
}

func (b *budget) leave() { b.depth-- }
