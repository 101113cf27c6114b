package sir

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

// TestDecode checks that Decode reads what Encode writes.
func TestDecode(t *testing.T) {
	want := &Structure{Producer: "mirador 1", Programs: []Program{{Path: "/bin/mmul", BuildID: "ab12", Regions: []Region{
		{ID: "mmul:dot", Name: "dot", Symbol: "dot", Kind: Function, File: "work.c", Line: 7, Entry: 0x1136, Size: 96, Regions: []Region{
			{ID: "mmul:dot.1", Name: "tab\tand\nline", Kind: Function, Entry: 0x1140, Size: 16, Unknown: "a table"},
			{ID: "mmul:dot/loop1", Name: "loop1", Kind: Loop, File: "work.c", Line: 9, Entry: 0x1140, Size: 24, Code: &Code{
				Column: 3, EndLine: 12, Irreducible: true, Falls: true, Empty: true, Ranges: []Range{{0x1140, 0x1150}, {0x1160, 0x1168}}, Enter: []Edge{{0, 0x1140}, {0x1136, 0x1140}},
				Leave: []Edge{{0x1160, 0x1168}}, Entries: []uint64{0x1140}, Exits: []uint64{0x1168, 0x1170}, Untimed: "why", SharedExits: true,
			}, Placements: &Placements{Counted: []string{"kernel"}, Refusals: []Refusal{{"inline", OfCount, 0x1140, "why"}}}, Regions: []Region{{ID: "mmul:dot/loop1/call.f", Name: "call.f", Kind: Call, Entry: 1, Size: 5, Code: &Code{Callee: "f()", Ranges: []Range{{1, 6}}, Uncounted: "no"}}}},
		}},
		{ID: "mmul:_Z1fi", Name: `f<"a">(int&)`, Symbol: "_Z1fi", Kind: Function, Entry: 1 << 63, Placements: &Placements{Counted: []string{"inline", "trap"}, Timed: []string{"trap"}, Refusals: []Refusal{{"inline", OfTime, 8, "no"}}}},
		{ID: "mmul:g", Name: "g", Kind: Function, Placements: &Placements{Uncounted: "not known"}},
		{ID: "mmul:h", Name: "h", Kind: Function, Placements: &Placements{Counted: []string{"trap"}, Untimed: "not known"}},
		{ID: "mmul:i", Name: "i", Kind: Function, Placements: &Placements{Counted: []string{"trap"}, Timed: []string{"trap"}}},
	}}, {Path: "/lib/libc.so.6"}, {Path: "mmul", Resources: []Resource{
		{In: "file:///a.c", Out: "file:///b.c", Hash: "ab", Language: "c", Gaps: []Gap{{1, 2, 3, 4, "a macro"}, {Line: 7, Reason: "the end"}}, MoreGaps: 9}, {In: "b.f", Language: "fortran"},
	}, Regions: []Region{{ID: "mmul:f", Name: "f", Kind: Function, Form: "static", File: "a.c", Line: 1, Extent: &Extent{1, 9, 1}, Regions: []Region{
		{ID: "mmul:f/loop1", Name: "loop1", Kind: Loop, Form: "for", File: "a.c", Line: 2, Code: &Code{Column: 2, EndLine: 4, EndColumn: 2}},
		{ID: "mmul:f/lambda1", Name: "lambda1", Kind: Lambda, File: "a.c", Line: 5, Extent: &Extent{1, 9, 1}},
		{ID: "mmul:f/if1", Name: "if1", Kind: If, File: "a.c", Line: 9, Code: &Code{Column: 2, EndLine: 9, EndColumn: 8}, Regions: []Region{
			{ID: "mmul:f/lambda2", Name: "lambda2", Kind: Lambda, File: "a.c", Line: 9, Extent: &Extent{1, 9, 7}}}},
	}}}}}}
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
