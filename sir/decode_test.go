package sir

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

// TestDecode checks that Decode reads what Encode writes.
func TestDecode(t *testing.T) {
	want := &Structure{Programs: []Program{{Path: "/bin/mmul", BuildID: "ab12", Regions: []Region{
		{ID: "mmul:dot", Name: "dot", Symbol: "dot", Kind: Function, File: "work.c", Line: 7, Entry: 0x1136, Size: 96, Regions: []Region{
			{ID: "mmul:dot.1", Name: "tab\tand\nline", Kind: Function, Entry: 0x1140, Size: 16, Unknown: "a table"},
			{ID: "mmul:dot/loop1", Name: "loop1", Kind: Loop, File: "work.c", Line: 9, Entry: 0x1140, Size: 24, Code: &Code{
				Column: 3, EndLine: 12, Irreducible: true, Ranges: []Range{{0x1140, 0x1150}, {0x1160, 0x1168}}, Enter: []Edge{{0, 0x1140}, {0x1136, 0x1140}},
				Leave: []Edge{{0x1160, 0x1168}}, Entries: []uint64{0x1140}, Exits: []uint64{0x1168, 0x1170}, Untimed: "why", SharedExits: true,
			}, Regions: []Region{{ID: "mmul:dot/loop1/call.f", Name: "call.f", Kind: Call, Entry: 1, Size: 5, Code: &Code{Callee: "f()", Ranges: []Range{{1, 6}}, Uncounted: "no"}}}},
		}},
		{ID: "mmul:_Z1fi", Name: `f<"a">(int&)`, Symbol: "_Z1fi", Kind: Function, Entry: 1 << 63},
	}}, {Path: "/lib/libc.so.6"}}}
	var text bytes.Buffer
	if err := Encode(&text, want); err != nil {
		t.Fatal(err)
	}
	got, err := Decode(&text)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "<errors/>", `<sir><program path="p"><unit id="u" entry="x"/></program></sir>`, `<sir><program>`} {
		if s, err := Decode(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is read as %+v", bad, s)
		}
	}
}
