package grammar

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"

	"mirador/sir"
	"mirador/sir/source/outline"
)

// Facts are what the files of a program share: macros, and the names of files.
type Facts struct {
	macros map[string]*macro
	names  []string
}

// macro has the definitions of a macro, in all files and branches of conditionals.
type macro struct {
	values     []string
	parameters bool
	is         meaning
}

// meaning is what is known of a macro. Others are read as the calls and names that they look like.
type meaning int

const (
	unknown   meaning = iota
	loops             // it begins a loop
	attribute         // it means nothing to the structure
)

var (
	define     = regexp.MustCompile(`^[ \t]*#[ \t]*define[ \t]+(\w{3,100})(\([^)\n]*\))?[ \t]*((?:\\\r?\n[ \t]*)?[^\n]{0,200})`)
	beginsLoop = regexp.MustCompile(`^(?:for|while)[ \t]*\(`)
	comments   = regexp.MustCompile(`/\*.*?(\*/|$)|//.*`)
	attributes = regexp.MustCompile(`__attribute__[ \t]*\(\(.*\)\)|__declspec[ \t]*\([^)]*\)|\bextern\b|\b__inline(__)?\b`)
	annotation = regexp.MustCompile(`\b(\w+)[ \t]*(\((?:[^()]|\([^()]*\))*\))?`)
)

const mostMacros = 50_000

// Declare adds what a file has for others.
func (x *Facts) Declare(f *outline.File) {
	if x.macros == nil {
		x.macros = map[string]*macro{}
	}
	x.names = append(x.names, path.Base(f.Path))
	if f.Language == "java" {
		return
	}
	const word, longest = "define", 600
	for at := 0; ; at += len(word) {
		i := bytes.Index(f.Text[at:], []byte(word))
		if i < 0 {
			return
		}
		at += i
		line := bytes.LastIndexByte(f.Text[:at], '\n') + 1
		found := define.FindSubmatch(f.Text[line:min(len(f.Text), line+longest)])
		if found == nil {
			continue
		}
		name := string(found[1])
		m := x.macros[name]
		if m == nil && len(x.macros) < mostMacros {
			m = &macro{}
			x.macros[name] = m
		}
		if m != nil {
			value := string(found[3])
			if strings.IndexByte(value, '/') >= 0 {
				value = comments.ReplaceAllString(value, "")
			}
			m.values = append(m.values, strings.Trim(value, "\\ \t\r\n"))
			m.parameters = m.parameters || len(found[2]) > 0
		}
	}
}

// Declared finds out what macros mean, when all files are declared.
func (x *Facts) Declared() {
	for _, m := range x.macros {
		if m.parameters && slices.ContainsFunc(m.values, beginsLoop.MatchString) {
			m.is = loops
		}
	}
	const mostSteps = 4 // from one macro to another
	for range mostSteps {
		for _, m := range x.macros {
			if m.is == unknown && !slices.ContainsFunc(m.values, x.matters) {
				m.is = attribute
			}
		}
	}
}

// matters reports whether the value of a macro has more than attributes.
func (x *Facts) matters(value string) bool {
	if value != "" && !x.mayBegin(value) {
		return true
	}
	value = attributes.ReplaceAllString(value, "")
	value = annotation.ReplaceAllStringFunc(value, func(use string) string {
		name, _, _ := strings.Cut(use, "(")
		if m := x.macros[strings.TrimSpace(name)]; m != nil && m.is == attribute {
			return ""
		}
		return use
	})
	return strings.TrimSpace(value) != ""
}

// mayBegin reports whether the first word of a value may be an attribute. Most values are numbers and expressions.
func (x *Facts) mayBegin(value string) bool {
	end := 0
	for end < len(value) && isWord(value[end]) {
		end++
	}
	switch first := value[:end]; first {
	case "__attribute__", "__declspec", "extern", "__inline", "__inline__":
		return true
	default:
		m := x.macros[first]
		return m != nil && m.is == attribute
	}
}

// has reports whether the file that an #include names is among the resources.
func (x *Facts) has(name string) bool { return slices.Contains(x.names, path.Base(name)) }

// masked returns the text of a file as it is parsed, and where macros begin loops. Such a macro is read
// as while, and one without meaning as blanks.
func (x *Facts) masked(f *outline.File) (text []byte, begin []int) {
	if f.Language == "java" || len(x.macros) == 0 {
		return f.Text, nil
	}
	text = bytes.Clone(f.Text)
	for at := 0; at < len(text); {
		switch c := text[at]; {
		case c == '#' && len(bytes.TrimSpace(text[bytes.LastIndexByte(text[:at], '\n')+1:at])) == 0:
			at = endOfDirective(text, at)
		case c == '"' || c == '\'':
			at = endOfString(text, at)
		case !isWord(c):
			at++
		default:
			end := at
			for end < len(text) && isWord(text[end]) {
				end++
			}
			if m := x.macros[string(text[at:end])]; m != nil && m.is != unknown {
				if m.is == loops && end-at >= len("while") {
					begin = append(begin, at)
				}
				end = m.mask(text, at, end)
			}
			at = end
		}
	}
	return text, begin
}

// mask replaces the use of a macro, and returns where the text goes on.
func (m *macro) mask(text []byte, at, end int) int {
	word := ""
	if open := end + len(text[end:]) - len(bytes.TrimLeft(text[end:], " \t")); m.parameters {
		if open == len(text) || text[open] != '(' {
			return end
		}
		if m.is == attribute {
			closed := closing(text, open)
			if closed < 0 {
				return end
			}
			end = closed + 1
		}
	}
	if m.is == loops {
		if word = "while"; end-at < len(word) {
			return end
		}
	}
	copy(text[at:end], word+strings.Repeat(" ", end-at-len(word)))
	return end
}

// closing returns where the parenthesis that opens at a place is closed in its line, -1 if it is not.
func closing(text []byte, open int) int {
	depth := 0
	for i := open; i < len(text) && text[i] != '\n'; i++ {
		switch text[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// endOfDirective returns where a directive of the preprocessor ends, with the lines that continue it.
func endOfDirective(text []byte, at int) int {
	for {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text)
		}
		at += i + 1
		if line := bytes.TrimRight(text[:at-1], "\r"); len(line) == 0 || line[len(line)-1] != '\\' {
			return at
		}
	}
}

// endOfString returns where a string ends: in its line.
func endOfString(text []byte, at int) int {
	quote := text[at]
	for i := at + 1; i < len(text) && text[i] != '\n'; i++ {
		switch text[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		}
	}
	return at + 1
}

// nameMacro sets the form of the loop that a macro at a place begins.
func nameMacro(nodes []*outline.Node, at int) {
	i, found := slices.BinarySearchFunc(nodes, at, func(n *outline.Node, at int) int {
		switch {
		case n.End <= at:
			return -1
		case n.Start > at:
			return 1
		}
		return 0
	})
	if !found {
		return
	}
	if n := nodes[i]; n.Start == at && n.Kind == sir.Loop {
		n.Form = "macro"
	} else {
		nameMacro(n.Nodes, at)
	}
}
