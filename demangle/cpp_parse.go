package demangle

import "strings"

// A cppParser reads one name in the mangling of the Itanium C++ ABI, as GCC and Clang write
// it. The grammar leaves nothing to try twice: what was read once is not read again, so the
// work is in proportion to the name. What cannot be read ends it all: each function returns
// none then.
//
// References in comments are to the ABI's chapter 5, "Linkage and Object Files".
type cppParser struct {
	cppTree
	text string // the name from its encoding on
	pos  int

	subs    nodeStack // what S_ refers to (5.1.10)
	scratch nodeStack // lists that are being gathered, one upon the other
	params  paramScopes

	// forward are the parameters in the type of a conversion operator, whose arguments
	// come after it.
	forward nodeStack

	synthetic [3]int32 // parameters of lambdas that have been given a name, by kind
	lambda    int      // the level of the parameters of the lambda that is being read, or -1

	short         bool // without parameters and template arguments
	wholeTypes    bool // arguments after a template parameter belong to it
	permitForward bool // a parameter's arguments may come later
	untracked     bool // within a requirement: parameters are named by their numbers
}

// A nameState is what reading a name tells about the function that has it.
type nameState struct {
	structor  bool // or a conversion: its result isn't part of the name
	templated bool // it ends with template arguments
	explicit  bool // the object is its first parameter
	quals     uint8
	forward   int // of the parser's forward, those before the name
}

func (p *cppParser) ok() bool { return !p.over && !p.subs.full && !p.scratch.full && !p.forward.full }

// fail ends the reading.
func (p *cppParser) fail() nodeID {
	p.over = true
	return 0
}

// peek returns the byte that is k bytes ahead, zero behind the end.
func (p *cppParser) peek(k int) byte {
	if p.pos+k < len(p.text) {
		return p.text[p.pos+k]
	}
	return 0
}

func (p *cppParser) next(c byte) bool {
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *cppParser) nextText(s string) bool {
	if strings.HasPrefix(p.text[p.pos:], s) {
		p.pos += len(s)
		return true
	}
	return false
}

// until says whether the next element of a list that ends with c is to be read.
func (p *cppParser) until(c byte) bool { return p.ok() && !p.next(c) }

// want takes a byte that must come.
func (p *cppParser) want(c byte) bool {
	if p.next(c) {
		return true
	}
	p.over = true
	return false
}

// number reads digits, with an n before them where the number may be negative, and returns
// them as they are; "" if there are none.
func (p *cppParser) number(negative bool) string {
	start := p.pos
	if negative {
		p.next('n')
	}
	digits := p.pos
	for isDigit(p.peek(0)) {
		p.pos++
	}
	if p.pos == digits {
		p.pos = start
		return ""
	}
	return p.text[start:p.pos]
}

// positive reads a number.
func (p *cppParser) positive() (int, bool) {
	n, start := 0, p.pos
	for isDigit(p.peek(0)) {
		if n = n*10 + int(p.text[p.pos]-'0'); n > maxNatural {
			p.over = true
			return 0, false
		}
		p.pos++
	}
	return n, p.pos > start
}

// sequence reads an index of base 36 and '_': '_' is 0, '0_' 1 (5.1.10).
func (p *cppParser) sequence() (int, bool) {
	if p.next('_') {
		return 0, true
	}
	n, start := 0, p.pos
	for ; ; p.pos++ {
		switch c := p.peek(0); {
		case isDigit(c):
			n = n*36 + int(c-'0')
		case c >= 'A' && c <= 'Z':
			n = n*36 + int(c-'A') + 10
		default:
			return n + 1, p.pos > start && p.next('_')
		}
		if n > maxNatural {
			return 0, false
		}
	}
}

// index reads '_' as 0 and NUMBER '_' as NUMBER+1.
func (p *cppParser) index() (int, bool) {
	if p.next('_') {
		return 0, true
	}
	n, ok := p.positive()
	return n + 1, ok && p.next('_')
}

// identifier reads a length and that many bytes (5.1.3.1).
func (p *cppParser) identifier() string {
	n, ok := p.positive()
	if !ok || n == 0 || n > len(p.text)-p.pos {
		p.over = true
		return ""
	}
	p.pos += n
	return p.text[p.pos-n : p.pos]
}

// sourceName reads an identifier as a name.
func (p *cppParser) sourceName() nodeID {
	name := p.identifier()
	if strings.HasPrefix(name, "_GLOBAL__N") {
		name = "(anonymous namespace)"
	}
	return p.word(name)
}

// word is a node of just that text.
func (p *cppParser) word(text string) nodeID { return p.add(cppNode{kind: cppText, text: text}) }

// make makes a node whose first parts must be there: as many as are given.
func (p *cppParser) make(n cppNode, parts ...nodeID) nodeID {
	for k, id := range parts {
		if id == 0 {
			return p.fail()
		}
		switch k {
		case 0:
			n.a = id
		case 1:
			n.b = id
		case 2:
			n.c = id
		}
	}
	return p.add(n)
}

// substitutable notes that a part of the name can be referred to later.
func (p *cppParser) substitutable(id nodeID) nodeID {
	if id == 0 || !p.subs.push(id) {
		return p.fail()
	}
	return id
}

// gather starts a list; what is pushed on the scratch until gathered belongs to it.
func (p *cppParser) gather() int { return p.scratch.n }

func (p *cppParser) push(id nodeID) {
	if !p.scratch.push(id) {
		p.over = true
	}
}

// gathered ends a list.
func (p *cppParser) gathered(base int) nodeID {
	list := nodeID(0)
	if p.ok() {
		list = p.list(p.scratch.from(base))
	}
	p.scratch.cut(base)
	return list
}

// empty says whether there is no list, or one of nothing.
func (t *cppTree) empty(list nodeID) bool { return t.at(list).b == 0 }

// encoding reads the name of a function with its type, of an object, or of something that
// compilers make (5.1.2). At the top of the short form the type is not looked at.
func (p *cppParser) encoding(top bool) nodeID {
	if !p.enter() {
		return 0
	}
	defer p.leave()
	saved := p.params.save()
	defer p.params.restore(saved)
	if c := p.peek(0); c == 'G' || c == 'T' {
		return p.special()
	}
	state := nameState{forward: p.forward.n}
	name := p.name(&state)
	if name == 0 || !p.resolve(&state) {
		return p.fail()
	}
	if p.encodingEnds() || top && p.short {
		return name
	}
	fn := cppNode{kind: cppFunction, a: name, quals: state.quals, traits: functionLike}
	if p.nextText("Ua9enable_ifI") {
		base := p.gather()
		for p.until('E') {
			p.push(p.templateArg())
		}
		fn.d = p.make(cppNode{kind: cppEnableIf}, p.gathered(base))
	}
	if state.templated && !state.structor {
		if fn.b = p.parseType(); fn.b == 0 {
			return p.fail()
		}
	}
	fn.c = p.encodingParams(state.explicit)
	if p.next('Q') {
		fn.e = p.constraint()
	}
	if !p.ok() {
		return 0
	}
	return p.add(fn)
}

// encodingParams reads the parameters of a function up to the end of its encoding.
func (p *cppParser) encodingParams(explicit bool) nodeID {
	base := p.gather()
	if !p.next('v') {
		for first := true; p.ok() && (first || !p.encodingEnds() && p.peek(0) != 'Q'); first = false {
			param := p.parseType()
			if first && explicit {
				param = p.make(cppNode{kind: cppThis}, param)
			}
			p.push(param)
		}
	}
	return p.gathered(base)
}

// encodingEnds says whether nothing more belongs to an encoding: it is all, ends that of a
// local entity, or has a suffix.
func (p *cppParser) encodingEnds() bool {
	switch p.peek(0) {
	case 0, 'E', '.', '_':
		return true
	}
	return false
}

// resolve gives the parameters in a conversion's type their arguments.
func (p *cppParser) resolve(state *nameState) bool {
	for _, id := range p.forward.from(state.forward) {
		if !p.spend(1) {
			return false
		}
		argument, ok := p.params.find(0, int(p.at(id).num))
		if !ok || argument == 0 {
			return false
		}
		p.at(id).a = argument
	}
	p.forward.cut(state.forward)
	return true
}

// constraint reads what is required of template arguments (5.1.7).
func (p *cppParser) constraint() nodeID {
	saved := p.untracked
	p.untracked = true
	id := p.expr()
	p.untracked = saved
	return id
}
