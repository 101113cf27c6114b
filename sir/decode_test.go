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
			{ID: "mmul:dot.1", Name: "tab\tand\nline", Kind: "loop", Entry: 0x1140, Size: 16},
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
