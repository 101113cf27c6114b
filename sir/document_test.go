package sir

import (
	"bytes"
	"strings"
	"testing"
)

func TestEncode(t *testing.T) {
	s := &Structure{Producer: "test 1", Programs: []Program{{Path: "/bin/mmul", BuildID: "ab12", Regions: []Region{
		{ID: "mmul:dot", Name: "dot", Symbol: "dot", Kind: "function", File: "work.c", Line: 7, Entry: 0x1136, Size: 96, Regions: []Region{
			{ID: "mmul:dot.1", Name: "inside", Kind: "loop", Entry: 0x1140, Size: 16},
		}},
		{ID: "mmul:_Z1fi", Name: `f<"a">(int&)`, Symbol: "_Z1fi", Kind: "function", Entry: 0x1200},
	}}}}
	const want = `<?xml version="1.0" encoding="UTF-8"?>
<sir version="2" producer="test 1">
  <program path="/bin/mmul" buildId="ab12">
    <unit id="mmul:dot" name="dot" symbol="dot" kind="function" file="work.c" line="7" entry="0x1136" size="96">
      <unit id="mmul:dot.1" name="inside" kind="loop" entry="0x1140" size="16"/>
    </unit>
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

func TestEncodeReplacesWhatXMLCannotCarry(t *testing.T) {
	var out bytes.Buffer
	if err := Encode(&out, &Structure{Programs: []Program{{Path: "a\x00b\xffc\ufffe"}}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `<sir version="2" producer="mirador`) {
		t.Errorf("%s does not name its producer", out.String())
	}
	if want := `<program path="a�b�c�"/>`; !strings.Contains(out.String(), want) {
		t.Errorf("%s, want %s", out.String(), want)
	}
}
