//go:build linux && amd64

package hold

import (
	"debug/elf"
	"fmt"
)

// text reads the code of the function at an address of a program that is not relocated.
func text(path string, addr uint64) ([]byte, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return nil, err
	}
	for _, s := range symbols {
		if s.Value != addr || elf.ST_TYPE(s.Info) != elf.STT_FUNC {
			continue
		}
		section := f.Sections[s.Section]
		code := make([]byte, s.Size)
		_, err := section.ReadAt(code, int64(addr-section.Addr))
		return code, err
	}
	return nil, fmt.Errorf("%s has no function at %#x", path, addr)
}
