package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/dwarf"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
)

func newSymbolsInfo() *cobra.Command {
	var arch string
	var debugDirs []string
	var asJSON bool
	var memory memoryLimit
	c := &cobra.Command{
		Use:   "info FILE",
		Short: "Show what an image or a symbol map holds, and which debug files it has",
		Long: `Info shows the format, architecture, ID and segments of an ELF or Mach-O file, what DWARF it has, and where its debug
files were looked for. For a symbol map it shows what the map was made from. For a fat file without --arch it lists the
parts.`,
		Example: `  callreel symbols info /usr/bin/redis-server
  callreel symbols info redis.symmap --json`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			info, err := describe(c.Context(), args[0], arch, memory, debugDirs)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), info)
			}
			return infoText(c.OutOrStdout(), info)
		},
	}
	addArch(c, &arch)
	memory.add(c.Flags())
	addDebugDirs(c.Flags(), &debugDirs)
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// fileInfo is what symbols info says; the keys are promised.
type fileInfo struct {
	Format     string          `json:"format"`
	Arch       string          `json:"arch"`
	ID         string          `json:"id"`
	Type       string          `json:"type,omitempty"`
	Base       string          `json:"base"`
	Segments   []segmentInfo   `json:"segments"`
	Debug      debugInfo       `json:"debug"`
	Companions []companionInfo `json:"companions"`
	Map        *mapInfo        `json:"map,omitempty"`
	Slices     []string        `json:"slices,omitempty"`
}

type segmentInfo struct {
	Name     string `json:"name"`
	Address  string `json:"address"`
	Size     uint64 `json:"size"`
	Offset   uint64 `json:"file_offset"`
	FileSize uint64 `json:"file_size"`
	Perm     string `json:"permissions"`
}

// debugInfo is about the DWARF of the file itself.
type debugInfo struct {
	Versions   []int    `json:"dwarf_versions"`
	Units      int      `json:"units"`
	Bytes      uint64   `json:"bytes"` // of the units, inflated
	Sections   []string `json:"sections"`
	Compressed bool     `json:"compressed"`
	Symbols    int      `json:"symbols"`
	Problem    string   `json:"problem,omitempty"`
}

type companionInfo struct {
	Kind   string `json:"kind"`
	Path   string `json:"path"`
	Found  bool   `json:"found"`
	Reason string `json:"reason,omitempty"`
}

type mapInfo struct {
	Image     string `json:"image"`
	Functions uint64 `json:"functions"`
	Inlines   uint64 `json:"inlined_calls"`
	Rows      uint64 `json:"rows"`
	Bytes     int64  `json:"bytes"`
	DWARF     bool   `json:"dwarf"`
	Symbols   bool   `json:"symbols"`
}

// describe looks at one file.
func describe(ctx context.Context, path, arch string, memory memoryLimit, debugDirs []string) (*fileInfo, error) {
	if is, err := isMap(path); err != nil {
		return nil, fmt.Errorf("callreel: %w", err)
	} else if is {
		return describeMap(path)
	}
	im, err := memory.opener().OpenArch(path, arch)
	var fat *object.FatError
	if errors.As(err, &fat) {
		return describeFat(fat), nil
	}
	if err != nil {
		return nil, err
	}
	defer im.Close()
	info := &fileInfo{
		Format: im.Format.String(), Arch: im.Arch.String(), ID: im.ID(), Type: im.Type.String(), Base: fmt.Sprintf("%#x", im.BaseAddr()),
		Segments: []segmentInfo{}, Companions: []companionInfo{}, Debug: describeDebug(ctx, im),
	}
	for _, s := range im.Segments() {
		if s.Type == object.SegmentLoad {
			info.Segments = append(info.Segments, segmentInfo{s.Name, fmt.Sprintf("%#x", s.Addr), s.MemSize, s.Off, s.FileSize, s.Perm.String()})
		}
	}
	search := object.DebugSearch{Dirs: debugDirs}
	for _, found := range search.Companions(im) {
		one := companionInfo{Kind: found.Kind.String(), Path: found.Path, Found: found.Err == nil}
		switch {
		case found.Missing():
			one.Reason = "not there"
		case found.Err != nil:
			one.Reason = found.Err.Error()
		}
		info.Companions = append(info.Companions, one)
	}
	return info, nil
}

func describeFat(fat *object.FatError) *fileInfo {
	info := &fileInfo{Format: "fat Mach-O", Segments: []segmentInfo{}, Companions: []companionInfo{}, Debug: emptyDebug()}
	for _, s := range fat.Slices {
		info.Slices = append(info.Slices, s.Name)
	}
	return info
}

func describeMap(path string) (*fileInfo, error) {
	m, err := symbols.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	made := &mapInfo{Image: m.ImageName(), DWARF: m.HasDWARF(), Symbols: m.HasSymbols()}
	made.Functions, made.Inlines, made.Rows, made.Bytes = m.Counts()
	return &fileInfo{
		Format: "symbol map", Arch: m.Arch().String(), ID: m.ID(), Base: fmt.Sprintf("%#x", m.BaseAddr()),
		Segments: []segmentInfo{}, Companions: []companionInfo{}, Debug: emptyDebug(), Map: made,
	}, nil
}

func emptyDebug() debugInfo { return debugInfo{Versions: []int{}, Sections: []string{}} }

// describeDebug says what DWARF an image has itself.
func describeDebug(ctx context.Context, im *object.Image) debugInfo {
	info := emptyDebug()
	list, err := im.Symbols()
	if info.Symbols = len(list); err != nil {
		info.Problem = err.Error()
	}
	sections := im.Sections()
	for k := range sections {
		s := &sections[k]
		name := strings.TrimPrefix(strings.TrimLeft(s.Name, "._"), "z")
		if strings.HasPrefix(name, "debug_") && s.FileSize > 0 {
			info.Sections = append(info.Sections, s.Name)
			info.Compressed = info.Compressed || compressed(im, s)
		}
	}
	d, err := dwarf.Open(ctx, im, dwarf.Options{})
	if err != nil {
		if !errors.Is(err, dwarf.ErrNoDWARF) {
			info.Problem = err.Error()
		}
		return info
	}
	defer d.Close()
	info.Versions = append(info.Versions, d.Versions()...)
	for _, u := range d.Units() {
		info.Units++
		info.Bytes += u.Size
	}
	if problems := d.Problems(); len(problems) > 0 {
		info.Problem = problems[0].Error()
	}
	return info
}

// compressed says whether a section has to be inflated.
func compressed(im *object.Image, s *object.Section) bool {
	if im.Format == object.ELF && s.Flags&uint64(elf.SHF_COMPRESSED) != 0 {
		return true
	}
	return strings.HasPrefix(strings.TrimLeft(s.Name, "._"), "zdebug_")
}

// infoText writes it for people.
func infoText(w io.Writer, info *fileInfo) error {
	var b strings.Builder
	line := func(key, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", key, printable(strings.TrimRight(fmt.Sprintf(format, args...), " ")))
	}
	line("format", "%s", info.Format)
	if info.Slices != nil {
		line("parts", "%s; --arch chooses one", strings.Join(info.Slices, ", "))
		_, err := io.WriteString(w, b.String())
		return err
	}
	line("arch", "%s", info.Arch)
	line("id", "%s", or(info.ID, "none"))
	line("base", "%s", info.Base)
	if m := info.Map; m != nil {
		line("image", "%s", m.Image)
		line("holds", "%s, %s, %s, %s", things(m.Functions, "function"), things(m.Inlines, "inlined call"), things(m.Rows, "row"), bytesText(m.Bytes))
		_, err := io.WriteString(w, b.String())
		return err
	}
	line("type", "%s", info.Type)
	for _, s := range info.Segments {
		line("segment", "%s %#x bytes at %s, file %#x bytes at %#x  %s", s.Perm, s.Size, s.Address, s.FileSize, s.Offset, s.Name)
	}
	line("symbols", "%s", count(uint64(info.Debug.Symbols)))
	line("dwarf", "%s", dwarfText(&info.Debug))
	if info.Debug.Problem != "" {
		line("problem", "%s", info.Debug.Problem)
	}
	for _, c := range info.Companions {
		state := "found"
		if !c.Found {
			state = c.Reason
		}
		line("companion", "%s %s: %s", c.Kind, c.Path, state)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func dwarfText(d *debugInfo) string {
	if d.Units == 0 && len(d.Sections) == 0 {
		return "none"
	}
	text := fmt.Sprintf("versions %s, %s, %s", strings.Trim(fmt.Sprint(d.Versions), "[]"), things(uint64(d.Units), "unit"), bytesText(int64(d.Bytes)))
	if d.Compressed {
		text += ", compressed"
	}
	return text
}

func or(text, none string) string {
	if text == "" {
		return none
	}
	return text
}
