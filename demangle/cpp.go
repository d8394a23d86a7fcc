package demangle

import "strings"

// cppName returns what a mangled name of C++ stands for, and the steps that took. It is
// the name itself if it cannot be read.
func cppName(s string, short bool) (string, int) {
	prefix, text, kind := cppPrefix(s)
	if kind == cppNotMangled {
		return s, 0
	}
	var p cppParser
	p.budget = newBudget(s)
	p.text, p.short, p.wholeTypes, p.lambda = text, short, true, -1
	w := cppPrinter{cppParser: &p, greater: 1, packIndex: -1, packSize: -1}
	p.write(prefix)
	if id := p.whole(kind); p.ok() {
		w.print(id)
	}
	if !p.ok() || p.n == len(prefix) {
		return s, p.spent
	}
	return string(p.written()), p.spent
}

// A cppEntry is the form of a symbol that has a name of C++ in it.
type cppEntry uint8

const (
	cppNotMangled cppEntry = iota
	cppPlain               // _ZENCODING
	cppBlock               // ___ZENCODING_block_invoke_2, Clang's for Objective-C
	cppKeyed               // _GLOBAL__I__ZENCODING
	cppWord                // _GLOBAL__I_WORD
	cppToken               // __alloc_token_3__ZENCODING, Clang's
)

// cppPrefix returns the words for the form of a symbol, and the text that is to be read.
func cppPrefix(s string) (words, text string, entry cppEntry) {
	if rest, ok := strings.CutPrefix(s, "_Z"); ok {
		return "", rest, cppPlain
	}
	if rest, ok := strings.CutPrefix(s, "___Z"); ok {
		return "invocation function for block in ", rest, cppBlock
	}
	if rest, ok := strings.CutPrefix(s, "_GLOBAL_"); ok {
		return globalPrefix(rest)
	}
	if rest, ok := strings.CutPrefix(s, "__alloc_token_"); ok {
		if digits := strings.TrimLeft(rest, "0123456789"); digits != rest {
			if rest, ok = strings.CutPrefix(digits, "_"); !ok {
				return "", "", cppNotMangled
			}
		}
		if rest, ok = strings.CutPrefix(rest, "_Z"); ok {
			return "", rest, cppToken
		}
	}
	return "", "", cppNotMangled
}

// globalPrefix is cppPrefix for what initializes a file's variables, or destroys them.
func globalPrefix(rest string) (words, text string, entry cppEntry) {
	if len(rest) < 4 || strings.IndexByte("._$", rest[0]) < 0 || rest[2] != '_' {
		return "", "", cppNotMangled
	}
	switch rest[1] {
	case 'I':
		words = "global constructors keyed to "
	case 'D':
		words = "global destructors keyed to "
	default:
		return "", "", cppNotMangled
	}
	if text, ok := strings.CutPrefix(rest[3:], "_Z"); ok {
		return words, text, cppKeyed
	}
	return words, rest[3:], cppWord
}

// whole reads all of the text.
func (p *cppParser) whole(entry cppEntry) nodeID {
	if entry == cppWord {
		p.pos = len(p.text)
		return p.word(p.text)
	}
	id := p.encoding(true)
	if !p.ok() || p.short && entry != cppBlock {
		return id
	}
	switch {
	case entry == cppBlock:
		return p.blockSuffix(id)
	case p.peek(0) == '.' && entry == cppPlain:
		id = p.make(cppNode{kind: cppClone, text: p.text[p.pos:]}, id)
		p.pos = len(p.text)
	case entry == cppToken:
		id = p.make(cppNode{kind: cppClone, text: ".alloc_token"}, id)
	}
	if p.pos < len(p.text) {
		return p.fail()
	}
	return id
}

// blockSuffix reads what follows the name of the function that a block stands in.
func (p *cppParser) blockSuffix(id nodeID) nodeID {
	if p.short {
		p.pos = max(p.pos, strings.LastIndex(p.text, "_block_invoke"))
	}
	if !p.nextText("_block_invoke") {
		return p.fail()
	}
	if p.next('_') && p.number(false) == "" {
		return p.fail()
	}
	p.number(false)
	if p.pos < len(p.text) && p.peek(0) != '.' {
		return p.fail()
	}
	return id
}
