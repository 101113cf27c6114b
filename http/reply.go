package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"strconv"

	"mirador/omis"
)

// encodeReply writes a reply as XML:
//
//	<reply><service index="0"><result status="0" name="OMIS_OK"><object>p_1</object><value type="integer">1</value></result></service></reply>
func encodeReply(out *bytes.Buffer, reply omis.Reply) error {
	out.WriteString("<reply>")
	for i, service := range reply {
		out.WriteString(`<service index="` + strconv.Itoa(i) + `">`)
		for _, result := range service {
			encodeResult(out, result)
		}
		out.WriteString("</service>")
	}
	out.WriteString("</reply>\n")
	return nil
}

func encodeResult(out *bytes.Buffer, r omis.ObjectResult) {
	out.WriteString(`<result status="` + strconv.Itoa(int(r.Status)) + `" name="` + r.Status.String() + `">`)
	for _, object := range r.Objects {
		out.WriteString("<object>")
		xml.EscapeText(out, []byte(object))
		out.WriteString("</object>")
	}
	for _, v := range r.Values {
		encodeValue(out, v)
	}
	if r.Msg != "" {
		out.WriteString("<message>")
		xml.EscapeText(out, []byte(r.Msg))
		out.WriteString("</message>")
	}
	out.WriteString("</result>")
}

func encodeValue(out *bytes.Buffer, v omis.Value) {
	out.WriteString(`<value type="` + v.Kind.String() + `">`)
	switch v.Kind {
	case omis.KindInt:
		if v.Neg {
			out.WriteByte('-')
		}
		out.WriteString(strconv.FormatUint(v.N, 10))
	case omis.KindFloat:
		out.WriteString(strconv.FormatFloat(v.Float, 'g', -1, 64))
	case omis.KindBinary:
		out.WriteString(base64.StdEncoding.EncodeToString([]byte(v.Str)))
	case omis.KindList:
		for _, element := range v.List {
			encodeValue(out, element)
		}
	default:
		xml.EscapeText(out, []byte(v.Str))
	}
	out.WriteString("</value>")
}
