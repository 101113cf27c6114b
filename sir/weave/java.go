package weave

import (
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"

	"mirador/sir"
)

// javaSource is a source in Java. Its tokens are those of C.
type javaSource struct {
	*cSource
	regions int
	finals  map[string]bool // variables that are declared final and without a value
}

func newJavaSource(w *Weaving, s *Source) text {
	at := slices.IndexFunc(w.sources, func(other Source) bool { return other.Path == s.Path && !other.Fixed })
	j := &javaSource{readC(w, s), len(w.bySource[at]), map[string]bool{}}
	declares := false
	for i := range j.tokens {
		switch {
		case j.is(i, "final"):
			declares = true
		case declares && j.is(i, ";"):
			j.finals[j.word(i-1)] = true
			declares = false
		case j.is(i, "=", "(", ")", "{", "}"):
			declares = false
		}
	}
	return j
}

// woven returns the text with regions woven in. A region is a try statement, whose finally ends it.
func (s *javaSource) woven(weaving string, _ int, regions []*located) ([]byte, error) {
	class := classBeside(s.Path)
	var edits []edit
	var wrong []error
	for _, l := range regions {
		b, e := markerName('b', weaving, l.ID), markerName('e', weaving, l.ID)
		p, err := s.piece(l, fmt.Sprintf("if (%s.on) %[1]s.%s(); try {", class, b))
		if err == nil && s.regions > mostJavaRegions {
			err = fmt.Errorf("its source has more than %d regions, and a class has no room for them", mostJavaRegions)
		}
		var inserted []edit
		if err == nil {
			inserted, err = (&javaPiece{p, s.finals, fmt.Sprintf("} finally { if (%s.on) %[1]s.%s(); }", class, e)}).edits()
		}
		if err != nil {
			wrong = append(wrong, &Refusal{l.ID, err.Error()})
		}
		edits = append(edits, inserted...)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return apply(s.Text, edits), nil
}

// mostJavaRegions limits the regions of a source, each of which takes two methods of a class.
const mostJavaRegions = 5000

// javaPiece is the text of a region of Java.
type javaPiece struct {
	*piece
	finals map[string]bool
	end    string
}

// edits returns what is inserted for the region.
func (p *javaPiece) edits() ([]edit, error) {
	switch p.at.Kind {
	case sir.Function, sir.Method, sir.Lambda:
		return p.body()
	case sir.Catch, sir.Finally:
		return p.inside(p.opening(p.from, p.to-1))
	case sir.Call:
		if p.is(p.from, "super", "this") && p.is(p.from+1, "(") {
			return nil, errors.New("another constructor is called before all statements: measure that one")
		}
		if !p.is(p.to, ";") || !p.beginsStatement() {
			return nil, errors.New("it is within an expression: measure a statement around it")
		}
		p.to++
		return p.statement()
	case sir.Branch:
		if form := p.at.Form; form == "case" || form == "default" || form == "type" {
			return nil, errors.New("the statements behind a label of a switch are no block: measure regions inside, or the switch")
		}
		return p.statement()
	case sir.Loop, sir.If, sir.Switch, sir.Block, sir.Body, sir.Return, sir.Throw, sir.Try, sir.Lock:
		return p.statement()
	}
	return nil, fmt.Errorf("a region of the type %s is an expression, and only statements can be woven", p.at.Kind)
}

// body puts the body of a method or a lambda in a try statement. The call of another constructor remains before it.
func (p *javaPiece) body() ([]edit, error) {
	brace := p.opening(p.from, p.to-1)
	if p.at.Kind == sir.Lambda && !p.is(brace-1, "->") {
		return nil, errors.New("it is an expression, and only statements can be woven: write a block")
	}
	for i := brace + 1; brace >= 0 && i < p.to-1; i++ {
		if p.outer[i] != int32(brace) || !p.is(i, "super", "this") || !p.is(i+1, "(") {
			continue
		}
		for i < p.to-1 && !(p.is(i, ";") && p.outer[i] == int32(brace)) {
			i++
		}
		return p.inside(i)
	}
	return p.inside(brace)
}

// inside puts what follows a token, up to the brace at the end, in a try statement.
func (p *javaPiece) inside(begin int) ([]edit, error) {
	if begin < 0 || begin >= p.to-1 || !p.is(begin, "{", ";") || !p.is(p.to-1, "}") {
		return nil, errors.New("it has no block")
	}
	first := edit{at: int(p.tokens[begin].end), depth: p.at.depth, text: " " + p.begin}
	last := edit{at: int(p.tokens[p.to-1].start), depth: p.at.depth, end: true, text: p.end + " "}
	if first.at == last.at { // ends are sorted before beginnings
		first.text += " " + last.text
		return []edit{first}, nil
	}
	return []edit{first, last}, nil
}

// statement puts a statement, with its labels, in a try statement.
func (p *javaPiece) statement() ([]edit, error) {
	if p.at.Kind == sir.Switch && p.is(p.to, ";", ",", ")", ".", ":", "?") {
		return nil, errors.New("its value is used: measure a statement around it")
	}
	if !p.is(p.to-1, ";", "}") || p.at.Kind == sir.Lock && !p.is(p.from, "synchronized") {
		return nil, errors.New("it is no statement")
	}
	if p.at.Kind == sir.Loop || p.at.Kind == sir.If {
		if err := p.patterns(); err != nil {
			return nil, err
		}
	}
	for p.is(p.from-1, ":") && p.from > 2 && p.tokens[p.from-2].kind == word && p.is(p.from-3, ";", "{", "}", ")", ":", "else", "do", "->") && !p.is(p.from-2, "default") {
		p.from -= 2
	}
	if err := errors.Join(p.cases(), p.assigned()); err != nil {
		return nil, err
	}
	return []edit{p.before("{ " + p.begin + " "), p.behind(" " + p.end + " }")}, nil
}

// patterns refuses a condition that declares a variable, which the statements that follow may use.
func (p *javaPiece) patterns() error {
	head := p.from
	for head < p.to && !p.is(head, "(", "{") {
		head++
	}
	if p.is(p.from, "do") || p.is(head, "{") {
		return nil
	}
	for i := head; i < p.behindBrackets(head); i++ {
		if !p.is(i, "instanceof") {
			continue
		}
		for i++; p.is(i, "final", ".", "[", "]", "<", ">", "?", ",") || i < p.to && p.tokens[i].kind == word && p.is(i+1, ".", "<", "["); i++ {
		}
		if p.is(i+1, "(") || i+1 < p.to && p.tokens[i+1].kind == word {
			return errors.New("its condition declares a variable, which statements that follow may use: measure the regions inside")
		}
	}
	return nil
}

// assigned refuses a region that may not end by its end, if a final variable gets its value in it or before, and in another
// place behind it. The compiler knows that control does not come there, but assumes that it does behind a finally.
func (p *javaPiece) assigned() error {
	jumps := func(i int) bool { return p.is(i, "return", "throw", "break", "continue", "yield", "while", "for") }
	from := p.from
	for from < p.to && !jumps(from) {
		from++
	}
	if len(p.finals) == 0 || from == p.to {
		return nil
	}
	begin, end := p.unit()
	before := map[string]bool{}
	for i := begin; i < end; i++ {
		name := p.word(i)
		switch {
		case !p.finals[name] || !p.assigns(i):
		case i < p.to:
			before[name] = true
		case before[name]:
			return fmt.Errorf("it may not end by its end, and the final variable %s is assigned behind it as well as before: measure another region", name)
		}
	}
	return nil
}

// assigns reports whether a name is followed by the sign of an assignment.
func (p *javaPiece) assigns(i int) bool {
	return p.tokens[i].kind == word && p.is(i+1, "=") && !p.is(i+2, "=")
}

// classBeside returns the name of the class that a source uses: there is one for each source, in its package.
func classBeside(file string) string {
	return strings.TrimSuffix(path.Base(file), path.Ext(file)) + "Mirador"
}

var inPackage = regexp.MustCompile(`(?m)^[ \t]*package[ \t]+([\w.$]+)[ \t]*;`)

// librariesOfJava returns a class beside each source that has regions. The class loads a library with their markers.
func librariesOfJava(w *Weaving, regions [][]*located) (files []File) {
	for i, s := range w.sources {
		if s.Language == "java" && !s.Fixed {
			files = append(files, File{Source: i, Suffix: "Mirador.java", Text: classOfJava(w.id, s, regions[i])})
		}
	}
	return files
}

// classOfJava returns the text of a class beside a source.
func classOfJava(weaving string, s Source, regions []*located) []byte {
	class, within := classBeside(s.Path), ""
	if found := inPackage.FindSubmatch(s.Text); found != nil {
		within = string(found[1])
	}
	l := &library{weaving: weaving}
	var methods, code strings.Builder
	for _, r := range regions {
		for _, what := range []string{"begin", "end"} {
			name := markerName(what[0], weaving, r.ID)
			l.names = append(l.names, "Java_"+native(strings.TrimPrefix(within+"."+class, "."))+"_"+name)
			l.markers = append(l.markers, what+":"+r.name())
			fmt.Fprintf(&methods, "  static native void %s();\n", name)
		}
	}
	text := base64.StdEncoding.EncodeToString(l.bytes())
	for len(text) > 0 {
		n := min(len(text), 48_000)
		fmt.Fprintf(&code, "        %q,\n", text[:n])
		text = text[n:]
	}
	if within != "" {
		within = "package " + within + ";\n"
	}
	return fmt.Appendf(nil, javaClass, within, class, path.Base(s.Path), &methods, &code)
}

// native returns a name as it is in the names of native methods.
func native(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r == '.':
			b.WriteByte('_')
		case r == '_':
			b.WriteString("_1")
		case r < 0x80 && r != '$':
			b.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, "_0%04x", unit)
			}
		}
	}
	return b.String()
}

// javaClass is compiled with any version of Java from 8.
const javaClass = `%[1]s
/**
 * Begins and ends the regions that Mirador has woven into %[3]s: by native methods of a library that does
 * nothing, in which a monitor finds them. On other machines than x86-64 with Linux regions have no code.
 */
final class %[2]s {
  static final boolean on = load();

%[4]s
  private static boolean load() {
    try {
      String[] parts = {
%[5]s      };
      java.nio.file.Path file = java.nio.file.Files.createTempFile("mirador-", ".so");
      try {
        java.nio.file.Files.write(file, java.util.Base64.getDecoder().decode(String.join("", parts)));
        System.load(file.toString());
      } finally {
        java.nio.file.Files.delete(file);
      }
      return true;
    } catch (java.io.IOException | LinkageError | SecurityException e) {
      return false;
    }
  }
}
`
