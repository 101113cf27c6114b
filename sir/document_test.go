package sir

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEncode(t *testing.T) {
	s := &Structure{Programs: []Program{{Path: "/bin/mmul", BuildID: "ab12", Units: []Unit{
		{ID: "mmul:dot", Name: "dot", Symbol: "dot", Kind: "function", File: "work.c", Line: 7, Entry: 0x1136, Size: 96, Exits: []uint64{1}},
		{ID: "mmul:_Z1fi", Name: `f<"a">(int&)`, Symbol: "_Z1fi", Kind: "function", Entry: 0x1200},
	}}}}
	const want = `<?xml version="1.0" encoding="UTF-8"?>
<sir>
  <program path="/bin/mmul" buildId="ab12">
    <unit id="mmul:dot" name="dot" symbol="dot" kind="function" file="work.c" line="7" entry="0x1136" size="96"/>
    <unit id="mmul:_Z1fi" name="f&lt;&quot;a&quot;>(int&amp;)" symbol="_Z1fi" kind="function" entry="0x1200" size="0"/>
  </program>
</sir>
`
	var out bytes.Buffer
	if err := Encode(&out, s); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// text generates text that XML can carry; Encode replaces other characters.
func text(least int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return characters(rapid.StringN(least, 20, -1).Draw(t, "text"))
	})
}

func structures() *rapid.Generator[*Structure] {
	unit := rapid.Custom(func(t *rapid.T) Unit {
		return Unit{
			ID: text(1).Draw(t, "id"), Name: text(0).Draw(t, "name"), Symbol: text(0).Draw(t, "symbol"),
			Kind: text(0).Draw(t, "kind"), File: text(0).Draw(t, "file"), Line: rapid.IntRange(0, 1<<31-1).Draw(t, "line"),
			Entry: rapid.Uint64().Draw(t, "entry"), Size: rapid.Uint64().Draw(t, "size"),
		}
	})
	program := rapid.Custom(func(t *rapid.T) Program {
		p := Program{Path: text(1).Draw(t, "path"), BuildID: rapid.StringMatching(`([0-9a-f]{2}){0,20}`).Draw(t, "buildId")}
		p.Units = append(p.Units, rapid.SliceOfN(unit, 0, 4).Draw(t, "units")...)
		return p
	})
	return rapid.Custom(func(t *rapid.T) *Structure {
		s := &Structure{}
		s.Programs = append(s.Programs, rapid.SliceOfN(program, 0, 3).Draw(t, "programs")...)
		return s
	})
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := structures().Draw(t, "structure")
		var out bytes.Buffer
		if err := Encode(&out, s); err != nil {
			t.Fatal(err)
		}
		got, err := Decode(&out)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, s) {
			t.Fatalf("got %+v, want %+v", got, s)
		}
	})
}

func TestEncodeReplacesWhatXMLCannotCarry(t *testing.T) {
	var out bytes.Buffer
	s := &Structure{Programs: []Program{{Path: "a\x00b\xffc\ufffe"}}}
	if err := Encode(&out, s); err != nil {
		t.Fatal(err)
	}
	got, err := Decode(&out)
	if err != nil || got.Programs[0].Path != "a\ufffdb\ufffdc\ufffd" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestDecodeErrors(t *testing.T) {
	cases := []struct{ name, document, want string }{
		{"empty", ``, "not a structure document"},
		{"malformed", `<sir><program`, "not a structure document"},
		{"another document", `<probe id="1"/>`, "root element is not sir"},
		{"no path", `<sir><program/></sir>`, "program 1: it has no path"},
		{"no id", `<sir><program path="a"><unit id="x"/></program><program path="b"><unit/></program></sir>`, "unit 2: it has no id"},
		{"line", `<sir><program path="a"><unit id="x" line="many"/></program></sir>`, `line="many"`},
		{"entry", `<sir><program path="a"><unit id="x" entry="12"/></program></sir>`, `entry="12"`},
		{"size", `<sir><program path="a"><unit id="x" size="0x12"/></program></sir>`, `size="0x12"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Decode(strings.NewReader(c.document))
			var typed *DecodeError
			if !errors.As(err, &typed) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`<sir><program path="/bin/mmul" buildId="ab"><unit id="mmul:dot" name="dot" kind="function" entry="0x1" size="2"/></program></sir>`)
	f.Add(`<sir><other/></sir>`)
	f.Add(`<!DOCTYPE sir [<!ENTITY a "b">]><sir>&a;</sir>`)
	f.Fuzz(func(t *testing.T, document string) {
		s, err := Decode(strings.NewReader(document))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := Encode(&out, s); err != nil {
			t.Fatal(err)
		}
		again, err := Decode(&out)
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%+v became %+v (%v)", s, again, err)
		}
	})
}
