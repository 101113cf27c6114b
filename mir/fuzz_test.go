package mir

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// seeds adds the documents of testdata: what people send, correct and incorrect.
func seeds(f *testing.F) {
	files, err := filepath.Glob("testdata/documents/*.xml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		document, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(document)
	}
}

// FuzzScan checks that every input gives either a tree, whose elements are properly nested, or
// an error with a position.
func FuzzScan(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := RequestLimits()
		tree, err := Scan(data, limits)
		if err != nil {
			refused, ok := err.(*Error)
			if !ok || len(refused.Faults) != 1 || refused.Faults[0].Pos.Line < 1 && len(data) <= limits.Bytes {
				t.Fatalf("refused with %#v", err)
			}
			return
		}
		if tree.Root().End() != tree.Len() {
			t.Fatalf("the root ends at %d of %d", tree.Root().End(), tree.Len())
		}
		before := Position{}
		for i := range tree.Len() {
			e := tree.At(i)
			if e.End() <= i || e.End() > tree.Len() || e.Name() == "" {
				t.Fatalf("element %d: %+v", i, *e.node())
			}
			if pos := e.Pos(); pos.Line < before.Line || pos.Line == before.Line && pos.Column <= before.Column {
				t.Fatalf("element %d is at %v, the one before at %v", i, pos, before)
			}
			before = e.Pos()
			e.Text()
		}
	})
}

// FuzzDecode checks that a decoded document can be written, and read back unchanged.
func FuzzDecode(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		document, err := Decode(data, RequestLimits())
		if err != nil {
			return
		}
		first, err := Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(first, ReplyLimits())
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		second, err := Marshal(again)
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Fatalf("%v: first\n%s\nthen\n%s", err, first, second)
		}
	})
}
