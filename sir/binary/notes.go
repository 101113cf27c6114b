package binary

import (
	"debug/elf"
	"encoding/hex"
	"path/filepath"
)

// separateDebug opens the debug file of a build id, nil if there is none that
// can be read.
func separateDebug(dir, buildID string) *elfFile {
	if dir == "" || len(buildID) < 4 {
		return nil
	}
	path := filepath.Join(dir, ".build-id", buildID[:2], buildID[2:]+".debug")
	f, err := openRegular(path)
	if err != nil {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil
	}
	d, err := openELF(path, f, info.Size())
	if err != nil {
		f.Close()
		return nil
	}
	if id, _ := notes(d); id != buildID {
		f.Close()
		return nil
	}
	return d
}

// notes reads the build id and whether the program was built for indirect
// branch tracking.
func notes(f *elfFile) (buildID string, ibt bool) {
	const (
		ntBuildID      = 3
		ntProperty     = 5
		propertyX86And = 0xc0000002
		featureIBT     = 1
	)
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOTE || s.FileSize > 1<<16 {
			continue
		}
		b, err := f.bytes(s)
		if err != nil {
			continue
		}
		align := max(4, min(s.Addralign, 8))
		eachNote(b, align, func(name string, kind uint32, desc []byte) {
			switch {
			case name == "GNU\x00" && kind == ntBuildID:
				buildID = hex.EncodeToString(desc)
			case name == "GNU\x00" && kind == ntProperty:
				for len(desc) >= 12 {
					size := uint64(le32(desc[4:]))
					if le32(desc) == propertyX86And && size == 4 {
						ibt = le32(desc[8:])&featureIBT != 0
					}
					if 8+size > uint64(len(desc)) {
						break
					}
					desc = desc[min(uint64(len(desc)), (8+size+7)&^7):]
				}
			}
		})
	}
	return buildID, ibt
}

func eachNote(b []byte, align uint64, note func(name string, kind uint32, desc []byte)) {
	for len(b) >= 12 {
		nameLen, descLen, kind := uint64(le32(b)), uint64(le32(b[4:])), le32(b[8:])
		descAt := (12 + nameLen + align - 1) &^ (align - 1)
		end := descAt + descLen
		if end > uint64(len(b)) {
			return
		}
		note(string(b[12:12+nameLen]), kind, b[descAt:end])
		b = b[min(uint64(len(b)), (end+align-1)&^(align-1)):]
	}
}
