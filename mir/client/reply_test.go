package client_test

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	gateway "mirador/http"
	"mirador/mir/client"
	"mirador/mir/conform"
	"mirador/omis"
)

// FuzzReply checks that a reply is unchanged after writing it as XML and parsing it, for any
// bytes in its strings, and that the XML conforms to the schema.
func FuzzReply(f *testing.F) {
	for _, s := range []string{
		"plain text", "", "caf\u00e9 \u2713 \U0001f600", "a <b> & \"c\" ]]> 'd'", "tab\tline\nreturn\r\nend\r",
		"\x00", "\x1b[31mred\x1b[0m", "latin 1: caf\xe9", "cut \xf0\x9f\x98", "surrogate \xed\xa0\x80", "overlong \xc0\x80",
		"\ufffd is a character", "\ufffe", "\uffff", "\x7f \u0085 \u2028", " both ends ", "=?base64", "]]>",
	} {
		f.Add(s, s, uint64(len(s)), 0.1)
	}
	f.Fuzz(func(t *testing.T, text, message string, n uint64, x float64) {
		if math.IsNaN(x) {
			x = 0 // NaN differs from itself
		}
		want := omis.Reply{
			{{Status: omis.OK, Values: []omis.Value{omis.String(text), omis.Binary([]byte(text)), omis.Uint(n), omis.Float(x)}}},
			nil,
			{
				{Objects: []omis.Token{"p_1", omis.Token(text)}, Status: omis.OSError | omis.Fatal, Msg: message},
				{Objects: []omis.Token{"t_2"}, Status: omis.CSRTriggered, Values: []omis.Value{
					omis.List(omis.String(message), omis.List(), omis.List(omis.TokenValue(omis.Token(text))), omis.Value{Kind: omis.KindParam, Str: text}),
					{Kind: omis.KindInt, Neg: true, N: n},
				}},
			},
		}
		var out bytes.Buffer
		gateway.WriteReply(&out, want)
		if err := conform.Check(false, out.Bytes()); err != nil {
			t.Fatalf("%v in\n%s", err, &out)
		}
		if line := strings.TrimSuffix(out.String(), "\n"); strings.ContainsAny(line, "\r\n") {
			t.Errorf("%q has several lines", line)
		}
		got, err := client.ParseReply(out.Bytes())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v, %#v\nwas written as %s\nand read as %#v", err, want, &out, got)
		}
	})
}

// TestReadableReply checks that only strings that XML cannot carry are encoded.
func TestReadableReply(t *testing.T) {
	var out bytes.Buffer
	gateway.WriteReply(&out, omis.Reply{{{Values: []omis.Value{omis.String("caf\u00e9\n"), omis.String("caf\xe9")}, Msg: "\x1b"}}})
	want := `<reply><service index="0"><result status="0" name="OMIS_OK"><value type="string">café&#xA;</value>` +
		`<value type="string" encoding="base64">Y2Fm6Q==</value><message encoding="base64">Gw==</message></result></service></reply>` + "\n"
	if out.String() != want {
		t.Errorf("got  %s\nwant %s", &out, want)
	}
}

// TestNoReply checks that ParseReply refuses texts that are not replies.
func TestNoReply(t *testing.T) {
	for _, text := range []string{
		"", "<reply>", `<errors/>`,
		`<reply><service index="0"><result status="0" name=""><value type="string" encoding="rot13">nopq</value></result></service></reply>`,
		`<reply><service index="0"><result status="0" name=""><object encoding="base64">?</object></result></service></reply>`,
		`<reply><service index="0"><result status="0" name=""><value type="integer">1x</value></result></service></reply>`,
		`<reply><service index="0"><result status="0" name=""><value type="number">1</value></result></service></reply>`,
	} {
		if got, err := client.ParseReply([]byte(text)); err == nil {
			t.Errorf("%s is read as %#v", text, got)
		}
	}
}
