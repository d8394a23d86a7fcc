package arm64

func (c *coder) beginRoutine()   {}
func (c *coder) endRoutine()     {}
func (c *coder) below(depth int) {}
func (c *coder) framed()         {}
func (c *coder) unframed()       {}
