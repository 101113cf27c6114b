package binary

import (
	"debug/elf"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
)

// DebugFiles finds the separate debug files of programs.
type DebugFiles interface {
	// Open opens the debug file of a build id, in hexadecimal.
	Open(buildID string) (*os.File, error)
}

// DebugDir is a directory with debug files by their build ids.
type DebugDir string

// Open implements DebugFiles.
func (dir DebugDir) Open(buildID string) (*os.File, error) {
	if len(buildID) < leastBuildID {
		return nil, fs.ErrNotExist
	}
	return openRegular(filepath.Join(string(dir), ".build-id", buildID[:2], buildID[2:]+".debug"))
}

// leastBuildID is the minimum number of digits of a build id.
const leastBuildID = 4

// separateDebug opens the debug file of a build id. It returns nil if there is none, or if it
// is invalid.
func separateDebug(files DebugFiles, buildID string) *elfFile {
	if files == nil || buildID == "" {
		return nil
	}
	f, err := files.Open(buildID)
	if err != nil {
		return nil
	}
	path := f.Name()
	d, err := openELF(path, f)
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

// notes reads the build id, and whether the program was built for indirect branch tracking.
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
