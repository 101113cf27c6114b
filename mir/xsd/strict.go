package xsd

import "regexp"

var (
	// foreign matches where a schema allows elements of other namespaces: in a choice, or any
	// number of times in a sequence.
	foreign = regexp.MustCompile(`<xs:group ref="foreign"(?: minOccurs="0" maxOccurs="unbounded")?/>`)
	// anyNumber matches a choice that may repeat any number of times.
	anyNumber = regexp.MustCompile(`(?s)<xs:choice minOccurs="0" maxOccurs="unbounded">(.*?)</xs:choice>`)
)

// strict derives a schema that accepts a subset of the documents of source, but faster. It
// lacks the wildcards for elements of other namespaces, which few documents use. Removing an
// optional part of a content, or one alternative of a choice, cannot make an invalid document
// valid.
//
// Without wildcards and counters, libxml2 uses a deterministic automaton, which is a table.
// Otherwise its automaton keeps a history in order to backtrack. libxml2 uses counters for a
// choice that repeats, so strict wraps the choice in a sequence.
func strict(source []byte) []byte {
	source = foreign.ReplaceAll(source, nil)
	return anyNumber.ReplaceAll(source,
		[]byte(`<xs:sequence minOccurs="0" maxOccurs="unbounded"><xs:choice>$1</xs:choice></xs:sequence>`))
}
