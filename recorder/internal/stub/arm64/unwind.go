package arm64

const unwindRowSize = 8

func (c *coder) beginRoutine()                {}
func (c *coder) endRoutine()                  {}
func (c *coder) below(depth int)              {}
func (c *coder) framed()                      {}
func (c *coder) unframed()                    {}
func (c *coder) stands(addr uint64)           {}
func (c *coder) copied(addr uint64)           {}
func (c *coder) beginUnwind()                 {}
func (c *coder) endUnwind(stubs uint64) error { return nil }
func (c *coder) placeUnwind(code []byte)      {}
