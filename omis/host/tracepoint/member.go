//go:build linux

package tracepoint

import "github.com/cilium/ebpf/btf"

// Member finds a member of a kernel struct. It also searches anonymous structs, which
// randomised layouts contain.
func Member(members []btf.Member, name string) (m btf.Member, offset uint32, ok bool) {
	for _, m := range members {
		if m.Name == name {
			return m, m.Offset.Bytes(), true
		}
		if inner, isStruct := btf.UnderlyingType(m.Type).(*btf.Struct); isStruct && m.Name == "" {
			if found, offset, ok := Member(inner.Members, name); ok {
				return found, m.Offset.Bytes() + offset, true
			}
		}
	}
	return btf.Member{}, 0, false
}
