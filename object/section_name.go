package object

import "strings"

// Section returns the first section of that name, nil when there is none. Asked
// for .debug_x it also finds .zdebug_x, the older name of a compressed one.
//
// In a Mach-O file the ELF name stands for the section that plays its part: .text
// for __TEXT,__text, .eh_frame for __TEXT,__eh_frame, .debug_info for
// __DWARF,__debug_info or __zdebug_info, .debug_str_offsets for __debug_str_offs,
// since names end after 16 bytes there. The file's own names, with the segment
// ("__DATA,__const") or without it, are found too.
func (i *Image) Section(name string) *Section {
	if i.Format == MachO {
		return i.machSection(name)
	}
	if s := i.sectionNamed(name); s != nil {
		return s
	}
	if rest, ok := strings.CutPrefix(name, ".debug_"); ok {
		return i.sectionNamed(".zdebug_" + rest)
	}
	return nil
}

func (i *Image) sectionNamed(name string) *Section {
	for k := range i.sections {
		if i.sections[k].Name == name {
			return &i.sections[k]
		}
	}
	return nil
}

// machSection finds a section by its ELF name or its own.
func (i *Image) machSection(name string) *Section {
	if name == "" {
		return nil
	}
	if segment, own, ok := strings.Cut(name, ","); ok {
		return i.sectionIn(segment, own)
	}
	rest, isELF := strings.CutPrefix(name, ".")
	if !isELF {
		return i.sectionNamed(machName(name))
	}
	segment := ""
	switch {
	case strings.HasPrefix(rest, "debug_"), strings.HasPrefix(rest, "zdebug_"), strings.HasPrefix(rest, "apple_"):
		segment = segmentDWARF
	case rest == "text", rest == "eh_frame":
		segment = segmentText
	}
	s := i.sectionIn(segment, machName("__"+rest))
	switch {
	case s == nil && strings.HasPrefix(rest, "debug_"):
		s = i.sectionIn(segment, machName("__z"+rest))
	case s == nil && segment == segmentText:
		s = i.sectionNamed("__" + rest) // kernel extensions have it in __TEXT_EXEC
	}
	return s
}

// sectionIn returns the first section of that own name in the segment, "" for any.
func (i *Image) sectionIn(segment, name string) *Section {
	for k := range i.sections {
		if s := &i.sections[k]; s.Name == name && (segment == "" || s.Segment == segment) {
			return s
		}
	}
	return nil
}

// machName cuts a name off where the file's field for it ends (sectname and
// segname have 16 bytes).
func machName(name string) string {
	return name[:min(len(name), machNameSize)]
}
