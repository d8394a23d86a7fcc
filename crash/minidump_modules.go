package crash

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// modules reads MINIDUMP_MODULE_LIST.
func (d *minidump) modules() error {
	b, count, err := d.list(streamModules, minidumpModuleSize, maxMinidumpModules, "the list of modules")
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	for first := true; count > 0; b, count, first = b[minidumpModuleSize:], count-1, false {
		im := &Image{Load: le.Uint64(b), Size: uint64(le.Uint32(b[8:])), Path: d.text(le.Uint32(b[20:]))}
		im.Arch = d.report.Arch
		d.moduleNames = append(d.moduleNames, im.Name())
		d.moduleID(im, locationAt(b[76:]))
		if d.report.OS == "windows" {
			if im.CodeID = fmt.Sprintf("%08x%x", le.Uint32(b[16:]), im.Size); im.ID == "" {
				im.ID = im.CodeID
			}
		}
		if first { // the program itself
			d.report.Process.Path = im.Path
		}
		d.report.Images = append(d.report.Images, im)
	}
	d.report.sortImages()
	return nil
}

// sortImages sorts by load address and drops what lies over others.
func (r *Report) sortImages() {
	slices.SortStableFunc(r.Images, func(a, b *Image) int { return cmp.Compare(a.Load, b.Load) })
	end, whole := uint64(0), len(r.Images)
	r.Images = slices.DeleteFunc(r.Images, func(im *Image) bool {
		if im.Load < end || im.Load+im.Size < im.Load {
			return true
		}
		end = im.Load + max(im.Size, 1)
		return false
	})
	if n := whole - len(r.Images); n > 0 {
		r.problem("%d of its images overlap others", n)
	}
}

// moduleID reads the record that identifies a module: Crashpad's and Breakpad's build ID
// ("BpEL"), or a PDB's GUID, age and path ("RSDS"), in which Breakpad puts the first 16 bytes of a
// build ID, and both a UUID of Apple's.
func (d *minidump) moduleID(im *Image, at location) {
	if at.size < 4 || at.size > maxName {
		return
	}
	b, err := d.part(uint64(at.rva), uint64(at.size), "the ID of a module")
	if err != nil {
		d.report.problem("%w", err)
		return
	}
	switch string(b[:4]) {
	case "LEpB": // 0x4270454c, little-endian
		if len(bytes.TrimRight(b[4:], "\x00")) > 0 {
			im.ID = hex.EncodeToString(b[4:])
		}
	case "RSDS":
		if len(b) < 24 || bytes.Equal(b[4:20], make([]byte, 16)) {
			return
		}
		straight := slices.Clone(b[4:20])
		// A GUID is written as one 32-bit and two 16-bit numbers and bytes.
		slices.Reverse(straight[:4])
		slices.Reverse(straight[4:6])
		slices.Reverse(straight[6:8])
		switch d.report.OS {
		case "linux", "android":
			im.ID, im.prefix = hex.EncodeToString(b[4:20]), true
		case "macos", "ios":
			im.ID = hex.EncodeToString(straight)
		default:
			im.ID = hex.EncodeToString(straight) + fmt.Sprintf("%x", binary.LittleEndian.Uint32(b[20:]))
			path, _, _ := bytes.Cut(b[24:], []byte{0})
			im.DebugFile = strings.ToValidUTF8(string(path[bytes.LastIndexAny(path, `\/`)+1:]), "\ufffd")
		}
	}
}
