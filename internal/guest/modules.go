package guest

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// wantedModules are those of the kernel that find the disks, their file systems and the port; those that they depend on come in front of them.
var wantedModules = []string{"crc32c_generic", "ext4", "virtio_pci", "virtio_blk", "virtio_console", "virtio_rng", "overlay"}

// builtinList has the modules that are in the kernel itself.
const builtinList = "modules.builtin"

// packedSuffix is that of modules that are packed.
const packedSuffix = ".xz"

// modulesOf returns the files of the kernel's modules below dir in the order in which they are to be loaded. Those that were packed are unpacked
// there.
func modulesOf(dir string) ([]string, error) {
	files, builtin := map[string]string{}, map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(strings.TrimSuffix(d.Name(), packedSuffix), ".ko"); ok && err == nil {
			files[moduleName(name)] = path
		}
		return err
	})
	if err == nil {
		var list []byte
		list, err = os.ReadFile(filepath.Join(dir, builtinList))
		for file := range strings.FieldsSeq(string(list)) {
			builtin[moduleName(strings.TrimSuffix(filepath.Base(file), ".ko"))] = true
		}
	}
	if err != nil {
		return nil, fmt.Errorf("guest: the kernel's modules: %w", err)
	}
	var out []string
	done := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		if done[name] {
			return nil
		}
		done[name] = true
		file, ok := files[name]
		if !ok && builtin[name] {
			return nil
		}
		if !ok {
			return fmt.Errorf("guest: the kernel has no module %s", name)
		}
		if strings.HasSuffix(file, packedSuffix) {
			var err error
			if file, err = unpackModule(file); err != nil {
				return err
			}
		}
		needs, err := dependencies(file)
		if err != nil {
			return fmt.Errorf("guest: module %s: %w", file, err)
		}
		for _, n := range needs {
			if err := add(n); err != nil {
				return err
			}
		}
		out = append(out, file)
		return nil
	}
	for _, name := range wantedModules {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// moduleName is as modules call each other: files may have dashes.
func moduleName(file string) string { return strings.ReplaceAll(file, "-", "_") }

// dependencies reads them from a module's own description (include/linux/module.h, MODULE_INFO).
func dependencies(file string) ([]string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	section := f.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("%s: it has no .modinfo", file)
	}
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	var names []string
	for entry := range bytes.SplitSeq(data, []byte{0}) {
		if list, ok := strings.CutPrefix(string(entry), "depends="); ok && list != "" {
			for name := range strings.SplitSeq(list, ",") {
				names = append(names, moduleName(name))
			}
		}
	}
	return names, nil
}
