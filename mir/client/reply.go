package client

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"mirador/omis"
)

// The elements of a reply (schemas/omis.xsd).
type (
	xmlReply struct {
		XMLName  xml.Name `xml:"reply"`
		Services []struct {
			Results []xmlResult `xml:"result"`
		} `xml:"service"`
	}
	xmlResult struct {
		Status  omis.Status `xml:"status,attr"`
		Objects []xmlValue  `xml:"object"`
		Values  []xmlValue  `xml:"value"`
		Message xmlValue    `xml:"message"`
	}
	xmlValue struct {
		Type     string     `xml:"type,attr"`
		Encoding string     `xml:"encoding,attr"`
		Text     string     `xml:",chardata"`
		List     []xmlValue `xml:"value"`
	}
)

// ParseReply parses a reply to an OMIS request that the gateway sent as XML.
func ParseReply(text []byte) (omis.Reply, error) {
	var read xmlReply
	if err := xml.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("cannot read a reply: %w", err)
	}
	reply := make(omis.Reply, len(read.Services))
	for i, s := range read.Services {
		for j := range s.Results {
			result, err := s.Results[j].decode()
			if err != nil {
				return nil, fmt.Errorf("cannot read a reply: result %d of service %d: %w", j, i, err)
			}
			reply[i] = append(reply[i], result)
		}
	}
	return reply, nil
}

func (x *xmlResult) decode() (r omis.ObjectResult, err error) {
	r.Status = x.Status
	for i := range x.Objects {
		object, err := x.Objects[i].bytes()
		if err != nil {
			return r, err
		}
		r.Objects = append(r.Objects, omis.Token(object))
	}
	if r.Values, err = decodeValues(x.Values); err != nil {
		return r, err
	}
	r.Msg, err = x.Message.bytes()
	return r, err
}

func decodeValues(list []xmlValue) (values []omis.Value, err error) {
	for i := range list {
		v, err := list[i].decode()
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// bytes returns a string, decoded according to its encoding.
func (x *xmlValue) bytes() (string, error) {
	switch x.Encoding {
	case "":
		return x.Text, nil
	case "base64":
		raw, err := base64.StdEncoding.DecodeString(x.Text)
		return string(raw), err
	}
	return "", fmt.Errorf("unknown encoding %q", x.Encoding)
}

// kinds has the kinds of values by the values of the attribute type.
var kinds = func() map[string]omis.Kind {
	byName := make(map[string]omis.Kind)
	for k := omis.KindInt; k <= omis.KindParam; k++ {
		byName[k.String()] = k
	}
	return byName
}()

func (x *xmlValue) decode() (v omis.Value, err error) {
	v.Kind = kinds[x.Type]
	switch v.Kind {
	case omis.KindInt:
		var digits string
		digits, v.Neg = strings.CutPrefix(x.Text, "-")
		v.N, err = strconv.ParseUint(digits, 10, 64)
	case omis.KindFloat:
		v.Float, err = strconv.ParseFloat(x.Text, 64)
	case omis.KindBinary:
		var raw []byte
		raw, err = base64.StdEncoding.DecodeString(x.Text)
		v.Str = string(raw)
	case omis.KindList:
		v.List, err = decodeValues(x.List)
	case omis.KindString, omis.KindToken, omis.KindParam:
		v.Str, err = x.bytes()
	default:
		err = fmt.Errorf("unknown type of value %q", x.Type)
	}
	return v, err
}
