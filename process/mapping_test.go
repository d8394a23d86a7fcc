package process

import "testing"

func TestSameMapping(t *testing.T) {
	lib := Mapping{Start: 0x10000, End: 0x14000, Offset: 0x1000, Inode: 7, Dev: 1, Path: "/lib/a.so", Perm: PermRead | PermExec}
	change := func(f func(*Mapping)) Mapping {
		m := lib
		f(&m)
		return m
	}
	for name, c := range map[string]struct {
		now  []Mapping
		want bool
	}{
		"the same":              {[]Mapping{lib}, true},
		"gone":                  {nil, false},
		"another file":          {[]Mapping{change(func(m *Mapping) { m.Inode = 8 })}, false},
		"another device":        {[]Mapping{change(func(m *Mapping) { m.Dev = 2 })}, false},
		"another name":          {[]Mapping{change(func(m *Mapping) { m.Path = "/lib/b.so" })}, false},
		"another part of it":    {[]Mapping{change(func(m *Mapping) { m.Offset = 0x2000 })}, false},
		"no file":               {[]Mapping{change(func(m *Mapping) { m.Inode, m.Dev, m.Path, m.Offset = 0, 0, "", 0 })}, false},
		"more of it":            {[]Mapping{change(func(m *Mapping) { m.Start, m.Offset = 0xF000, 0 })}, true},
		"split":                 {[]Mapping{change(func(m *Mapping) { m.End = 0x13000 }), change(func(m *Mapping) { m.Start, m.Offset = 0x13000, 0x4000 })}, true},
		"other protection":      {[]Mapping{change(func(m *Mapping) { m.Perm = PermRead })}, true},
		"only beside the place": {[]Mapping{change(func(m *Mapping) { m.End = 0x12000 })}, false},
	} {
		if got := SameMapping([]Mapping{lib}, c.now, 0x12345); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if SameMapping(nil, []Mapping{lib}, 0x12345) {
		t.Error("what was not there before is the same")
	}
}
