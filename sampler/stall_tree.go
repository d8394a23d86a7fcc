package sampler

// What bounds the memory of one stall. A stall of many different stacks, as in a deep
// recursion, is counted where there is room: its outer calls.
const (
	maxStallFrames = 1024
	maxStallNodes  = 1 << 15
)

// callTree counts samples by function and callers.
type callTree struct {
	nodes []callNode
	index map[callKey]int32
}

// callKey is a function called by what another node stands for. Code without a name is
// told by its address.
type callKey struct {
	caller          int32 // -1: outermost
	image, function string
	inlined         bool
	address         uint64
}

type callNode struct {
	caller  int32
	samples int
	frame   StallFrame
	votes   int // for frame's address, by Boyer and Moore's way to find a majority
}

func newCallTree() *callTree { return &callTree{index: map[callKey]int32{}} }

// add counts one sample, innermost frame first.
func (t *callTree) add(frames []Frame) {
	caller := int32(-1)
	for k := len(frames) - 1; k >= 0; k-- {
		f := &frames[k]
		key := callKey{caller: caller, function: f.Function, inlined: f.Inlined}
		if f.Image != nil {
			key.image = f.Image.Path
		}
		if f.Function == "" {
			key.address = f.Address
		}
		at, known := t.index[key]
		if !known {
			if len(t.nodes) >= maxStallNodes {
				return
			}
			at = int32(len(t.nodes))
			t.index[key] = at
			t.nodes = append(t.nodes, callNode{caller: caller})
		}
		t.nodes[at].count(f)
		caller = at
	}
}

func (n *callNode) count(f *Frame) {
	n.samples++
	switch {
	case n.votes == 0:
		n.frame = StallFrame{
			Function: f.Function, Address: f.Address, Offset: f.Offset, File: f.File, Line: f.Line, Inlined: f.Inlined,
		}
		if f.Image != nil {
			n.frame.Image = f.Image.Path
		}
		n.votes = 1
	case n.frame.Address == f.Address:
		n.votes++
	default:
		n.votes--
	}
}

// heaviest follows the most samples inwards from the heaviest outermost call; the
// result is innermost first.
func (t *callTree) heaviest() []StallFrame {
	best := make([]int32, len(t.nodes)+1) // by caller + 1; 0 for none, else node + 1
	for k := range t.nodes {
		b := &best[t.nodes[k].caller+1]
		if *b == 0 || t.nodes[k].samples > t.nodes[*b-1].samples {
			*b = int32(k) + 1
		}
	}
	var out []StallFrame
	for at := best[0]; at != 0; at = best[at] {
		f := t.nodes[at-1].frame
		f.Samples = t.nodes[at-1].samples
		out = append(out, f)
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}
