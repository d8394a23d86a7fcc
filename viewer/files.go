package viewer

import (
	"io/fs"
	"path"
)

// file returns a file of the page and its type; nil if there is none.
func (s *Server) file(name string) (data []byte, kind string) {
	kind, known := fileTypes[path.Ext(name)]
	if !known || !fs.ValidPath(name) {
		return nil, ""
	}
	data, err := fs.ReadFile(s.page, name)
	if err != nil {
		return nil, ""
	}
	return data, kind
}
