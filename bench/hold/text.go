//go:build linux && amd64

package hold

import (
	"debug/elf"
	"fmt"

	"mirador/omis/linux/rendezvous"
)

// text reads the function at an address of a program that is not relocated.
func text(path string, addr uint64) (rendezvous.Function, error) {
	f, err := elf.Open(path)
	if err != nil {
		return rendezvous.Function{}, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return rendezvous.Function{}, err
	}
	for _, s := range symbols {
		if s.Value != addr || elf.ST_TYPE(s.Info) != elf.STT_FUNC {
			continue
		}
		section := f.Sections[s.Section]
		code := make([]byte, s.Size)
		_, err := section.ReadAt(code, int64(addr-section.Addr))
		return rendezvous.Function{Start: addr, Code: code}, err
	}
	return rendezvous.Function{}, fmt.Errorf("%s has no function at %#x", path, addr)
}
