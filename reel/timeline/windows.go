package timeline

func (s *snapshot) loadWindow(l *lane, seg *segment) *decoded { return &decoded{} }
func (r *replay) window(i int)                                {}
func (seg *segment) hasFine() bool                            { return len(seg.fine.data) > 0 || seg.fine.chunk > 0 }
func (s *snapshot) fineBlock(seg *segment) []byte             { return seg.fine.data }
