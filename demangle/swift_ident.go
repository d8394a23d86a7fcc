package demangle

// identifier reads an identifier (Mangling.rst, Identifiers): a length and that
// many bytes; after '00' they are Punycode; after '0' pieces and letters for
// words of identifiers before it alternate.
func (p *swiftParser) identifier() nodeID {
	if !p.nextIf('0') {
		piece := p.piece()
		if piece == "" {
			return 0
		}
		p.learnWords(piece)
		return p.substitutable(p.add(nodeIdent, piece, 0))
	}
	if p.nextIf('0') {
		return p.substitutable(p.punycodeIdentifier())
	}
	var buffer [128]byte
	name := buffer[:0]
	// Words make a name longer than what it is read from: what is copied counts.
	add := func(s string) bool {
		name = append(name, s...)
		return p.spend(1+len(s)>>6) && len(name) <= maxOutput
	}
	for last := false; !last; {
		for !last && (isLower(p.peek()) || isUpper(p.peek())) {
			c := p.next()
			word := int(c - 'a')
			if last = isUpper(c); last {
				word = int(c - 'A')
			}
			if word >= p.wordCount {
				return 0
			}
			if !add(p.words[word]) {
				return 0
			}
		}
		if p.nextIf('0') {
			break
		}
		piece := p.piece()
		if piece == "" {
			return 0
		}
		if !add(piece) {
			return 0
		}
		p.learnWords(piece)
	}
	return p.substitutable(p.add(nodeIdent, string(name), 0))
}

// piece reads a length and that many bytes; it returns nothing if they are not there.
func (p *swiftParser) piece() string {
	n, ok := p.natural()
	if !ok || n > len(p.text)-p.pos {
		return ""
	}
	p.pos += n
	return p.text[p.pos-n : p.pos]
}

// maxPunycode bounds an encoded identifier, in bytes: decoding inserts characters
// in the middle of what there is.
const maxPunycode = 2 << 10

// punycodeIdentifier reads the rest of an identifier of any Unicode characters.
func (p *swiftParser) punycodeIdentifier() nodeID {
	n, ok := p.natural()
	p.nextIf('_')
	if !ok || n == 0 || n > len(p.text)-p.pos {
		return 0
	}
	if n > maxPunycode {
		return 0
	}
	p.pos += n
	name, ok := decodePunycode(p.text[p.pos-n:p.pos], '_', swiftDigit, &p.budget)
	if !ok || name == "" {
		return 0
	}
	return p.add(nodeIdent, name, 0)
}

// learnWords keeps the words of two letters and more. A word begins at the first
// character that is neither a digit nor '_', and ends before '_' and before a
// capital that follows another character.
func (p *swiftParser) learnWords(s string) {
	start := -1
	for i := 0; i <= len(s) && p.wordCount < maxWords; i++ {
		var c byte = '_'
		if i < len(s) && s[i] != 0 {
			c = s[i]
		}
		if start >= 0 && (c == '_' || isUpper(c) && !isUpper(s[i-1])) {
			if i-start >= 2 {
				p.words[p.wordCount] = s[start:i]
				p.wordCount++
			}
			start = -1
		}
		if start < 0 && c != '_' && !isDigit(c) {
			start = i
		}
	}
}

// swiftDigit is the value of a digit of Punycode in Swift's variant, or -1.
func swiftDigit(c byte) int {
	switch {
	case isLower(c):
		return int(c - 'a')
	case c >= 'A' && c <= 'J':
		return int(c-'A') + 26
	}
	return -1
}

// operatorCharacters are what the letters a to z stand for in the names of
// operators; a blank is none.
const operatorCharacters = "& @/= >    <*!|+?%-~   ^ ."

// operatorText turns letters into the characters of an operator. Characters
// beyond ASCII stand for themselves.
func operatorText(letters string) (string, bool) {
	out := make([]byte, len(letters))
	for i := range len(letters) {
		c := letters[i]
		if c < 0x80 {
			if !isLower(c) || operatorCharacters[c-'a'] == ' ' {
				return "", false
			}
			c = operatorCharacters[c-'a']
		}
		out[i] = c
	}
	return string(out), true
}

// operatorName reads the fixity of an operator whose letters are on the stack.
func (p *swiftParser) operatorName() nodeID {
	letters := p.popKind(nodeIdent)
	if letters == 0 {
		return 0
	}
	text, ok := operatorText(p.at(letters).text)
	fixity := p.next()
	if !ok || operatorFixity(fixity) == "" {
		return 0
	}
	return p.add(nodeOperator, text, int64(fixity))
}

// operatorFixity names the fixity of an operator; an unknown one has no name.
func operatorFixity(c byte) string {
	switch c {
	case 'i':
		return " infix"
	case 'p':
		return " prefix"
	case 'P':
		return " postfix"
	}
	return ""
}

// localName reads what tells equal names apart: a number, the file of a private
// declaration, or how a declaration that was made up is related to its name.
func (p *swiftParser) localName() nodeID {
	switch c := p.peek(); {
	case c == 'L':
		p.pos++
		discriminator := p.popKind(nodeIdent)
		return p.make(nodePrivate, "", discriminator, p.popTrait(isDeclName))
	case c == 'l':
		p.pos++
		return p.make(nodePrivate, "", p.popKind(nodeIdent))
	case c >= 'a' && c <= 'j', c >= 'A' && c <= 'J':
		p.pos++
		return p.make(nodeRelated, p.text[p.pos-1:p.pos], p.pop())
	}
	discriminator, ok := p.index()
	name := p.popTrait(isDeclName)
	if !ok || name == 0 {
		return 0
	}
	return p.add(nodeLocal, "", int64(discriminator), name)
}
