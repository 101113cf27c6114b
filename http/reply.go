package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"strconv"
	"unicode/utf8"

	"mirador/omis"
)

// WriteReply writes a reply as XML, as schemas/omis.xsd defines it, in one line:
//
//	<reply><service index="0"><result status="0" name="OMIS_OK"><object>p_1</object><value type="integer">1</value></result></service></reply>
//
// client.ParseReply reads it.
func WriteReply(out *bytes.Buffer, reply omis.Reply) {
	out.WriteString("<reply>")
	for i, service := range reply {
		out.WriteString(`<service index="` + strconv.Itoa(i) + `">`)
		for _, result := range service {
			encodeResult(out, result)
		}
		out.WriteString("</service>")
	}
	out.WriteString("</reply>\n")
}

func encodeResult(out *bytes.Buffer, r omis.ObjectResult) {
	out.WriteString(`<result status="` + strconv.Itoa(int(r.Status)) + `" name="` + r.Status.String() + `">`)
	for _, object := range r.Objects {
		out.WriteString("<object")
		encodeText(out, string(object))
		out.WriteString("</object>")
	}
	for _, v := range r.Values {
		encodeValue(out, v)
	}
	if r.Msg != "" {
		out.WriteString("<message")
		encodeText(out, r.Msg)
		out.WriteString("</message>")
	}
	out.WriteString("</result>")
}

func encodeValue(out *bytes.Buffer, v omis.Value) {
	out.WriteString(`<value type="` + v.Kind.String() + `"`)
	switch v.Kind {
	case omis.KindInt:
		out.WriteByte('>')
		if v.Neg {
			out.WriteByte('-')
		}
		out.WriteString(strconv.FormatUint(v.N, 10))
	case omis.KindFloat:
		out.WriteByte('>')
		out.WriteString(strconv.FormatFloat(v.Float, 'g', -1, 64))
	case omis.KindBinary:
		out.WriteByte('>')
		out.WriteString(base64.StdEncoding.EncodeToString([]byte(v.Str)))
	case omis.KindList:
		out.WriteByte('>')
		for _, element := range v.List {
			encodeValue(out, element)
		}
	default:
		encodeText(out, v.Str)
	}
	out.WriteString("</value>")
}

// encodeText ends a start tag and writes the text of the element. It encodes a text with a
// byte that XML cannot represent in base64, and sets the attribute encoding.
func encodeText(out *bytes.Buffer, text string) {
	if !fitsXML(text) {
		out.WriteString(` encoding="base64">` + base64.StdEncoding.EncodeToString([]byte(text)))
		return
	}
	out.WriteByte('>')
	xml.EscapeText(out, []byte(text)) // writing to a buffer does not fail
}

// fitsXML reports whether a text is UTF-8 and consists of characters that XML permits (XML
// 1.0, 2.2).
func fitsXML(text string) bool {
	for at, r := range text {
		switch {
		case r == utf8.RuneError:
			if _, size := utf8.DecodeRuneInString(text[at:]); size == 1 {
				return false
			}
		case r < 0x20 && r != '\t' && r != '\n' && r != '\r', r == 0xfffe, r == 0xffff:
			return false
		}
	}
	return true
}
