package outline

import "strings"

// Directive is what a directive of OpenMP applies to.
type Directive int

const (
	NoDirective Directive = iota
	Standalone
	OfBlock    // the statement or block that follows
	OfLoop     // the loop that follows
	Separator  // the statements up to the next one
	Declaring  // it is not executed
	EndOfBlock // Fortran only
)

// words are the words of directives. Clauses begin with others.
var words = map[string]Directive{
	"parallel": OfBlock, "do": OfLoop, "for": OfLoop, "simd": OfLoop, "sections": OfBlock, "section": Separator, "single": OfBlock, "workshare": OfBlock,
	"master": OfBlock, "masked": OfBlock, "critical": OfBlock, "barrier": Standalone, "taskwait": Standalone, "taskyield": Standalone, "taskgroup": OfBlock,
	"taskloop": OfLoop, "task": OfBlock, "atomic": OfBlock, "flush": Standalone, "ordered": OfBlock, "target": OfBlock, "teams": OfBlock,
	"distribute": OfLoop, "loop": OfLoop, "data": OfBlock, "update": Standalone, "enter": Standalone, "exit": Standalone, "cancel": Standalone,
	"cancellation": Standalone, "point": Standalone, "scan": Standalone, "threadprivate": Declaring, "declare": Declaring, "requires": Declaring, "reduction": Declaring, "end": EndOfBlock,
}

// OpenMPDirective returns the words of a directive, and what it applies to. text follows the
// sentinel; it may be of any case. Words may be written together, as Fortran allows.
func OpenMPDirective(text string) (name string, d Directive) {
	var found []string
	add := func(word string) {
		found = append(found, word)
		switch is := words[word]; {
		case d == EndOfBlock, d == Declaring, d == Standalone && is == OfBlock:
		case word == "ordered" && len(found) > 1, word == "reduction" && len(found) > 1 && d != Declaring:
			found = found[:len(found)-1] // a clause
		case is > d || is == Standalone:
			d = is
		}
	}
	for _, field := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == ' ' || r == '\t' || r == ',' }) {
		word, rest, _ := strings.Cut(field, "(")
		parts := split(word)
		if parts == nil {
			break
		}
		for _, p := range parts {
			add(p)
		}
		if rest != "" || strings.Contains(field, "(") {
			break
		}
	}
	return strings.Join(found, " "), d
}

// split returns the words that a word consists of, nil if it is none of a directive.
func split(word string) []string {
	if _, ok := words[word]; ok {
		return []string{word}
	}
	for i := len(word) - 1; i > 1; i-- {
		if _, ok := words[word[:i]]; ok {
			if rest := split(word[i:]); rest != nil {
				return append([]string{word[:i]}, rest...)
			}
		}
	}
	return nil
}
