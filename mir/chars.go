package mir

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// isSpace reports whether c is white space in XML (production S).
func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// isNameByte reports whether c is an ASCII character of a name. It excludes the colon, which
// separates a prefix.
func isNameByte(c byte) bool {
	return c|0x20-'a' < 26 || c-'0' < 10 || c == '_' || c == '-' || c == '.'
}

// isNameStart reports whether r matches production NameStartChar of XML 1.0, fifth edition,
// without the colon.
func isNameStart(r rune) bool {
	switch {
	case r < 0x80:
		return byte(r)|0x20-'a' < 26 || r == '_'
	case r < 0xC0, r == 0xD7, r == 0xF7:
		return false
	case r < 0x300, 0x370 <= r && r < 0x37E, 0x37F <= r && r < 0x2000:
		return true
	case r == 0x200C, r == 0x200D, 0x2070 <= r && r < 0x2190, 0x2C00 <= r && r < 0x2FF0:
		return true
	case 0x3001 <= r && r < 0xD800, 0xF900 <= r && r < 0xFDD0, 0xFDF0 <= r && r < 0xFFFE:
		return true
	}
	return 0x10000 <= r && r < 0xF0000
}

// isNameRune reports whether r matches production NameChar, without the colon.
func isNameRune(r rune) bool {
	if r < 0x80 {
		return isNameByte(byte(r))
	}
	return isNameStart(r) || r == 0xB7 || 0x300 <= r && r < 0x370 || r == 0x203F || r == 0x2040
}

// isChar reports whether r matches production Char: whether an XML document can carry it at
// all.
func isChar(r rune) bool {
	switch {
	case r < 0x20:
		return r == '\t' || r == '\n' || r == '\r'
	case r < 0xD800:
		return true
	case r < 0xE000, r == 0xFFFE, r == 0xFFFF:
		return false
	}
	return r <= utf8.MaxRune
}

// reference decodes the reference at the start of text, which begins with '&'. The size is 0
// if decoding fails, or would need a DTD.
func reference(text string) (r rune, size int) {
	const longest = 32 // room for a reference written with leading zeros
	end := strings.IndexByte(text[:min(len(text), longest)], ';')
	if end < 0 {
		return 0, 0
	}
	switch name := text[1:end]; name {
	case "lt":
		return '<', end + 1
	case "gt":
		return '>', end + 1
	case "amp":
		return '&', end + 1
	case "quot":
		return '"', end + 1
	case "apos":
		return '\'', end + 1
	default:
		r, ok := characterReference(name)
		if !ok {
			return 0, 0
		}
		return r, end + 1
	}
}

func characterReference(name string) (rune, bool) {
	digits, ok := strings.CutPrefix(name, "#")
	base := 10
	if hex, isHex := strings.CutPrefix(digits, "x"); isHex {
		digits, base = hex, 16
	}
	number, err := strconv.ParseUint(digits, base, 32)
	if !ok || err != nil || number > utf8.MaxRune || !isChar(rune(number)) {
		return 0, false
	}
	return rune(number), true
}

// decodeText resolves references and normalizes line ends in scanned character data.
func decodeText(raw string) string {
	if strings.IndexByte(raw, '&') < 0 {
		return normalizeLines(raw)
	}
	var text strings.Builder
	for raw != "" {
		stop := strings.IndexByte(raw, '&')
		if stop < 0 {
			break
		}
		text.WriteString(normalizeLines(raw[:stop]))
		r, size := reference(raw[stop:])
		text.WriteRune(r)
		raw = raw[stop+max(size, 1):]
	}
	text.WriteString(normalizeLines(raw))
	return text.String()
}

// normalizeLines turns every line end into a line feed (XML 1.0, 2.11).
func normalizeLines(text string) string {
	if strings.IndexByte(text, '\r') < 0 {
		return text
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// decodeAttribute resolves references and replaces white space by blanks (XML 1.0, 3.3.3).
func decodeAttribute(raw string) string {
	raw = strings.ReplaceAll(raw, "\r\n", " ")
	var text strings.Builder
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '&':
			r, size := reference(raw[i:])
			text.WriteRune(r)
			i += max(size, 1) - 1
		case isSpace(c):
			text.WriteByte(' ')
		default:
			text.WriteByte(c)
		}
	}
	return text.String()
}
