package binary

import "fmt"

// versionTable has the versions of .dynsym symbols that are not the default version of their
// name (memcpy@GLIBC_2.2.5 beside memcpy@@GLIBC_2.14).
type versionTable struct {
	index []byte // .gnu.version
	names map[uint16]string
}

func readVersions(f *elfFile) *versionTable {
	index, def := f.Section(".gnu.version"), f.Section(".gnu.version_d")
	if index == nil || def == nil || int(def.Link) >= len(f.Sections) {
		return nil
	}
	v := &versionTable{names: map[uint16]string{}}
	var err error
	if v.index, err = f.bytes(index); err != nil {
		return nil
	}
	defs, err := f.bytes(def)
	if err != nil {
		return nil
	}
	strs, err := f.bytes(f.Sections[def.Link])
	if err != nil {
		return nil
	}
	table := string(strs)
	// Fields of a definition: flags at 2, index at 4, first name at 12, next at 16.
	for len(defs) >= 20 && len(v.names) < 1<<15 {
		if aux := uint64(le32(defs[12:])); aux+4 <= uint64(len(defs)) {
			v.names[le16(defs[4:])] = cString(table, le32(defs[aux:]))
		}
		next := le32(defs[16:])
		if next == 0 || uint64(next) > uint64(len(defs)) {
			break
		}
		defs = defs[next:]
	}
	return v
}

// of returns the version of the i-th symbol, "" for a default version.
func (v *versionTable) of(i int) string {
	const hidden = 0x8000
	if v == nil || 2*i+2 > len(v.index) {
		return ""
	}
	n := le16(v.index[2*i:])
	if n&hidden == 0 {
		return ""
	}
	if name := v.names[n&^hidden]; name != "" {
		return name
	}
	return fmt.Sprint(n &^ hidden)
}
