package server

import (
	"github.com/callreel/callreel/symbols"
	"github.com/callreel/callreel/symbols/symbolize"
)

// openMap is a map with the texts that answers are made of.
type openMap struct {
	*symbols.Map
	texts *symbolize.Texts
	bytes int64 // of the map
}

func newOpenMap(m *symbols.Map, texts int64) *openMap {
	_, _, _, size := m.Counts()
	return &openMap{Map: m, bytes: size, texts: symbolize.NewTexts(texts)}
}

// size is what the map and its texts take, in bytes.
func (m *openMap) size() int64 { return m.bytes + m.texts.Size() }
