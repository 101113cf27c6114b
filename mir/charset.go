package mir

import (
	"bytes"
	"regexp"
	"strings"
)

// declaredEncoding matches the XML declaration of a document and captures its encoding.
var declaredEncoding = regexp.MustCompile(`^<\?xml[^?>]*\sencoding\s*=\s*["']([A-Za-z0-9._:-]+)["']`)

// xmlDeclaration begins a document that declares its encoding.
var xmlDeclaration = []byte("<?xml")

// KnownCharset reports whether Decode can read documents in an encoding. It knows the names
// that XML and media types have for encodings, in any case.
func KnownCharset(name string) bool {
	return strings.EqualFold(name, "UTF-8") || strings.EqualFold(name, "US-ASCII") || isLatin1(name)
}

func isLatin1(name string) bool {
	switch strings.ToLower(name) {
	case "iso-8859-1", "iso_8859-1", "iso_8859-1:1987", "latin1", "l1":
		return true
	}
	return false
}

// decoded returns the text of a document converted to UTF-8. It keeps invalid bytes, which the
// scanner refuses. charset is the encoding that the transport names, "" if it names none.
func decoded(data []byte, charset string) string {
	if charset == "" && bytes.HasPrefix(data, xmlDeclaration) {
		if found := declaredEncoding.FindSubmatch(data); found != nil {
			charset = string(found[1])
		}
	}
	if !isLatin1(charset) {
		return string(data)
	}
	var text strings.Builder
	text.Grow(len(data) + len(data)/8)
	for _, b := range data { // the first 256 code points of Unicode are ISO-8859-1
		text.WriteRune(rune(b))
	}
	return text.String()
}
