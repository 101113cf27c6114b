package fortran

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"mirador/sir/source/fortran"
	"mirador/sir/weave/woven"
)

// unitEnd returns the statement before which a unit ends: its END, or CONTAINS.
func (f *Source) unitEnd(u int) int {
	at := f.units[u]
	for i := at.first; i < at.last; i++ {
		if f.statements[i].Kind == fortran.Contains && f.unitOf[i] == u {
			return i
		}
	}
	return at.last
}

// unitEnds checks that a unit begins and ends once, and makes the statement before which it ends its last one.
func (f *Source) unitEnds(at *span) error {
	u := f.unitOf[at.first]
	for i := at.first; i <= at.last; i++ {
		if s := &f.statements[i]; s.Kind == fortran.Entry && f.unitOf[i] == u {
			return fmt.Errorf("it has another beginning, at line %d: measure the regions inside", f.lines.Of(s.Start))
		}
	}
	if f.statements[at.last].Kind != fortran.UnitEnd {
		return errors.New("its end was not found")
	}
	at.last = f.unitEnd(u)
	return nil
}

// mostFunctions limits the statement functions of a unit, for each of which its declarations are read.
const mostFunctions = 1000

// firstPlace returns the place before the first statement of a unit that is executed.
func (f *Source) firstPlace(u int) (place, error) {
	at := f.units[u]
	found, i := at.first, at.first
	if f.statements[i].Kind == fortran.Header {
		i++
	} else if found--; f.statements[i].Kind != fortran.Declaration && f.statements[i].Kind != fortran.Include {
		return place{int(f.lines[f.lines.Of(f.statements[i].Start)-1]), atLine}, nil
	}
	depth, open, functions := 0, 0, 0
search:
	for ; i <= at.last; i++ {
		s := &f.statements[i]
		switch s.Kind {
		case fortran.Preprocessor:
			if depth = conditionalDepth(depth, s.Text); depth < 0 {
				return place{}, errDivided
			}
			if open > 0 {
				found, open = i, depth
			}
			continue
		case fortran.Declaration, fortran.Include:
		case fortran.Executed:
			if functions++; functions > mostFunctions {
				return place{}, fmt.Errorf("it begins with more than %d assignments that may be functions", mostFunctions)
			}
			is, err := f.statementFunction(u, i)
			if err != nil {
				return place{}, err
			}
			if !is {
				break search
			}
		default:
			break search
		}
		found, open = i, depth
	}
	if open > 0 {
		return place{}, fmt.Errorf("its declarations end in a conditional of the preprocessor, at line %d, in which statements follow", f.lines.Of(f.statements[found].Start))
	}
	return f.pastConditional(f.behind(found)), nil
}

// conditionalDeclaration matches declarations that are compiled with OpenMP only.
var conditionalDeclaration = regexp.MustCompile(`(?i)^[ \t]*[!c*]\$[ \t]+(?:use|integer|real|logical|external|double|character|type|complex|include|parameter|common|save)\b`)

// pastConditional returns the place behind such declarations.
func (f *Source) pastConditional(at place) place {
	if at.site != atLine {
		return at
	}
	for line := f.lines.Of(at.at); line <= len(f.lines) && at.at < len(f.Text) && f.comment(f.line(line)); line++ {
		if conditionalDeclaration.Match(f.line(line)) && line < len(f.lines) {
			at.at = int(f.lines[line])
		}
	}
	return at
}

// statementFunction reports whether a statement before the first one that is executed defines a function.
func (f *Source) statementFunction(u, i int) (bool, error) {
	s := &f.statements[i]
	name := s.Function
	if name == "" {
		return false, nil
	}
	declared, untyped, uses := false, false, f.units[u].Around != nil
	for k := f.units[u].first; k < i; k++ {
		d := &f.statements[k]
		if d.Kind != fortran.Declaration {
			continue
		}
		untyped = untyped || strings.HasPrefix(d.Text, "implicitnone")
		uses = uses || strings.HasPrefix(d.Text, "use")
		is, array := declares(d.Text, name)
		if array {
			return false, nil
		}
		declared = declared || is
	}
	switch {
	case declared:
		return true, nil
	case untyped:
		return false, nil
	case uses:
		return false, fmt.Errorf("%s at line %d may be a function, or an array of another unit: declare it, or measure the regions inside", name, f.lines.Of(s.Start))
	}
	return true, nil
}

// declares reports whether a declaration is of a name, and whether it is one of an array.
func declares(text, name string) (is, array bool) {
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return is, false
		}
		at := from + i
		from = at + len(name)
		if from < len(text) && (wordByte(text[from]) || text[from] == '=') {
			continue
		}
		attributes, _, typed := strings.Cut(text, "::")
		if typed && at < len(attributes) {
			continue
		}
		if !typed && at > 0 && wordByte(text[at-1]) && !ofType.MatchString(text[:at]) {
			continue
		}
		is = true
		if from < len(text) && text[from] == '(' || typed && dimensioned.MatchString(attributes) {
			return true, true
		}
	}
}

var (
	ofType      = regexp.MustCompile(`^(?:integer|real|doubleprecision|complex|doublecomplex|logical|character|byte|dimension|common|allocatable|pointer|target|save|external)(?:\*\d+)?$`)
	dimensioned = regexp.MustCompile(`\b(?:dimension|allocatable|pointer|codimension)\b`)
)

func wordByte(c byte) bool { return c != '$' && c < 0x80 && woven.IsLetterOrDigit(c) }
