package xsd

import "regexp"

var (
	// foreign is where a schema lets elements of other namespaces stand: in a
	// choice, or in a sequence any number of times.
	foreign = regexp.MustCompile(`<xs:group ref="foreign"(?: minOccurs="0" maxOccurs="unbounded")?/>`)
	// anyNumber is a choice that is made again and again.
	anyNumber = regexp.MustCompile(`(?s)<xs:choice minOccurs="0" maxOccurs="unbounded">(.*?)</xs:choice>`)
)

// strict derives a schema that takes no more documents than the one it comes
// from, and takes them faster: one without the wildcards for elements of other
// namespaces, which few documents have. What can be left out of a content, or
// is one choice of several, can be taken away without making anything valid
// that was not.
//
// To libxml2 the difference is an automaton that is a table, and one that
// remembers all it has seen in order to go back; that takes no wildcards, and no
// counters, which it would make of a choice that repeats.
func strict(source []byte) []byte {
	source = foreign.ReplaceAll(source, nil)
	return anyNumber.ReplaceAll(source,
		[]byte(`<xs:sequence minOccurs="0" maxOccurs="unbounded"><xs:choice>$1</xs:choice></xs:sequence>`))
}
