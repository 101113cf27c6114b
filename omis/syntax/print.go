package syntax

import (
	"math"
	"strconv"
	"unicode"
	"unicode/utf8"

	"mirador/omis"
)

// Print writes a request such that Parse reads the same request.
func Print(r *omis.Request) string {
	b := make([]byte, 0, 128)
	if r.Event != nil {
		b = appendCall(b, r.Event)
		b = append(b, ' ')
	}
	b = append(b, ": "...)
	if r.Locked {
		b = append(b, "{ "...)
	}
	for i := range r.Actions {
		if i > 0 {
			b = append(b, ' ')
		}
		b = appendCall(b, &r.Actions[i])
		if r.Actions[i].Barrier {
			b = append(b, " ;"...)
		}
	}
	if r.Locked {
		b = append(b, " }"...)
	}
	return string(b)
}

func appendCall(b []byte, c *omis.Call) []byte {
	b = append(b, c.Service...)
	b = append(b, '(')
	b = AppendValues(b, c.Args)
	return append(b, ')')
}

// AppendValues appends values separated by commas.
func AppendValues(b []byte, vs []omis.Value) []byte {
	for i := range vs {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendValue(b, vs[i])
	}
	return b
}

// AppendValue appends a value in the notation of requests and replies. Floating values have
// the fewest digits that read back the same. NaN has no notation: it becomes the string "nan".
func AppendValue(b []byte, v omis.Value) []byte {
	switch v.Kind {
	case omis.KindInt:
		if v.Neg && v.N != 0 {
			b = append(b, '-')
		}
		return strconv.AppendUint(b, v.N, 10)
	case omis.KindFloat:
		return appendFloat(b, v.Float)
	case omis.KindString:
		return appendQuoted(b, v.Str)
	case omis.KindBinary:
		b = strconv.AppendInt(b, int64(len(v.Str)), 10)
		b = append(b, '#')
		return append(b, v.Str...)
	case omis.KindToken:
		return append(b, v.Str...)
	case omis.KindParam:
		b = append(b, '$')
		return append(b, v.Str...)
	case omis.KindList:
		b = append(b, '[')
		b = AppendValues(b, v.List)
		return append(b, ']')
	}
	return b
}

func appendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, `"nan"`...)
	case math.IsInf(f, 0):
		if f < 0 {
			b = append(b, '-')
		}
		return append(b, "1e999"...)
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'g', -1, 64)
	for _, c := range b[start:] {
		if c == '.' || c == 'e' {
			return b
		}
	}
	return append(b, ".0"...)
}

func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == utf8.RuneError && n == 1, !unicode.IsPrint(r):
			for _, c := range []byte(s[i : i+n]) {
				b = append(b, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
			}
		default:
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return append(b, '"')
}
