package fortran

import (
	"cmp"
	"slices"
	"strings"

	"mirador/sir"
	"mirador/sir/source/outline"
)

// StatementKind says what part a statement has in its unit.
type StatementKind int

const (
	Executed StatementKind = iota
	Declaration
	Header // of a unit
	Contains
	UnitEnd
	Entry
	Include // of a file, by a statement or the preprocessor
	OpenMP
	Preprocessor
)

// Statement is a statement, a directive of OpenMP or a line of the preprocessor, as Statements finds it.
type Statement struct {
	Kind       StatementKind
	Text       string // in lower case, without blanks and the contents of strings
	Start, End int    // bytes of the file; a label is before Start
	Label      string
	Construct  string // name of the construct that begins here
	Action     int    // where the statement behind IF (…) begins; 0: there is none
	Jumps      []Jump
	Pure       bool   // of a header: of a procedure that can call pure ones only
	Skipped    bool   // by the preprocessor
	Broken     bool   // its first line continues one before a line of the preprocessor
	Function   string // name of the statement function that it may define
}

// JumpKind is how a statement leaves what is around it.
type JumpKind int

const (
	ToLabel  JumpKind = iota
	Exits             // a construct
	Cycles            // a loop
	Returns           // from the unit
	Stops             // the program
	Anywhere          // to a label in a variable
)

// Jump is a way to leave a statement but by its end.
type Jump struct {
	Kind       JumpKind
	To         string // label, or name of the construct
	Start, End int    // the label in the file
	Alone      bool   // the statement does nothing else
}

// Statements returns the statements of a file with what they do to control, in order. It returns one more than
// most of them if there are more.
func Statements(text []byte, fixed bool, most int) []Statement {
	c := &collector{most: most}
	(&reader{file: text, fixed: fixed, to: c}).read()
	slices.SortStableFunc(c.all, func(a, b Statement) int { return cmp.Compare(a.Start, b.Start) })
	return c.all
}

// collector collects statements.
type collector struct {
	all  []Statement
	most int
	ifs  conditionals
	open []string // interfaces and types: the word behind their END
}

func (c *collector) add(s Statement) {
	s.Skipped = c.ifs.skipped()
	if len(c.all) > c.most {
		return
	}
	c.all = append(c.all, s)
}

func (c *collector) damaged(int, int, string) {}

func (c *collector) directive(text string, start, end int) {
	kind := OpenMP
	if _, d := outline.OpenMPDirective(text); d == outline.Declaring {
		kind = Declaration
	}
	c.add(Statement{Kind: kind, Text: strings.ToLower(text), Start: start, End: end})
}

func (c *collector) preprocessor(line string, start, end int) {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	kind := Preprocessor
	if word == "include" {
		kind = Include
	}
	c.ifs.line(word, rest)
	c.add(Statement{Kind: kind, Text: strings.TrimSpace(line), Start: start, End: end})
}

func (c *collector) statement(s *statement) {
	one := Statement{Text: s.text, Start: s.start, End: s.end, Label: s.label, Broken: s.broken, Kind: c.kind(s)}
	if one.Kind == Header {
		one.Pure = headerOf(s).pure
	}
	if one.Kind == Executed {
		from := 0
		one.Construct, from = constructName(s.text)
		rest := s.part(from, len(s.text))
		one.Function = mayDefine(rest.text)
		if at, ok := actionAt(rest.text); ok {
			rest = rest.part(at, len(rest.text))
			one.Action = rest.start
		}
		one.Jumps = jumps(&rest)
	}
	c.add(one)
}

// kind returns what part a statement has. All of an interface or a type declares something.
func (c *collector) kind(s *statement) StatementKind {
	if n := len(c.open); n > 0 {
		if strings.HasPrefix(s.text, "end"+c.open[n-1]) {
			c.open = c.open[:n-1]
		}
		return Declaration
	}
	t := s.text
	switch {
	case isAssignment(t):
		return Executed
	case headerOf(s).kind != "":
		return Header
	case endsUnit(t):
		return UnitEnd
	case t == "contains":
		return Contains
	case strings.HasPrefix(t, "entry"):
		return Entry
	case strings.HasPrefix(t, "include'"), strings.HasPrefix(t, `include"`):
		return Include
	case strings.HasPrefix(t, "interface"), t == "abstractinterface":
		c.open = append(c.open, "interface")
	case strings.HasPrefix(t, "type") && !strings.HasPrefix(t, "type(") && !strings.HasPrefix(t, "type*") && !strings.HasPrefix(t, "typeis("):
		c.open = append(c.open, "type")
	case t == "enum", strings.HasPrefix(t, "enum,"):
		c.open = append(c.open, "enum")
	case executes(t):
		return Executed
	}
	return Declaration
}

// executes reports whether a statement that is no assignment is executed.
func executes(t string) bool {
	if _, from := constructName(t); from > 0 || t == "block" {
		return true
	}
	return !strings.HasPrefix(t, "use") && !isDeclaration(t)
}

// mayDefine returns the name of an assignment in the form of a statement function: F(A, B) = …; "": it has another form.
func mayDefine(t string) string {
	name, rest := identifier(t)
	end := closing(rest, 0)
	if name == "" || !strings.HasPrefix(rest, "(") || end < 0 || !strings.HasPrefix(rest[end+1:], "=") || !isAssignment(t) {
		return ""
	}
	for argument := range strings.SplitSeq(rest[1:end], ",") {
		if !isName(argument) && end > 1 {
			return ""
		}
	}
	return name
}

// actionAt returns where the statement behind IF (…) begins.
func actionAt(t string) (at int, ok bool) {
	if !strings.HasPrefix(t, "if(") || isAssignment(t) && closing(t, 2) < 0 {
		return 0, false
	}
	end := closing(t, 2)
	if end < 0 {
		return 0, false
	}
	after := t[end+1:]
	if after == "" || after == "then" || !letter(after[0]) {
		return 0, false
	}
	return end + 1, true
}

// jumps returns the ways in which a statement that is executed leaves what is around it.
func jumps(s *statement) []Jump {
	t := s.text
	name, rest := identifier(t)
	label := func(from, to int, alone bool) Jump {
		return Jump{Kind: ToLabel, To: strings.TrimLeft(t[from:to], "0"), Start: int(s.at[from]), End: int(s.at[to-1]) + 1, Alone: alone}
	}
	switch {
	case isAssignment(t):
		return nil
	case strings.HasPrefix(name, "goto"):
		if digits := strings.TrimPrefix(t, "goto"); digits != "" && numberAt(digits, 0) == len(digits) {
			return []Jump{label(len("goto"), len(t), true)}
		}
		if name == "goto" && rest != "" {
			return labelsIn(t, "goto", label)
		}
		return []Jump{{Kind: Anywhere, Alone: true}}
	case strings.HasPrefix(t, "if("):
		return labelsIn(t, "if", label)
	case strings.HasPrefix(t, "call"):
		return alternates(t, label)
	}
	for _, w := range []struct {
		word string
		kind JumpKind
	}{{"errorstop", Stops}, {"stop", Stops}, {"return", Returns}, {"exit", Exits}, {"cycle", Cycles}} {
		after, ok := strings.CutPrefix(t, w.word)
		switch {
		case !ok:
		case w.kind == Stops, w.kind == Returns:
			return []Jump{{Kind: w.kind, Alone: true}}
		case after == "" || isName(after):
			return []Jump{{Kind: w.kind, To: after, Alone: true}}
		}
	}
	if kind, _ := actionOf(t); kind == sir.IO && strings.HasPrefix(rest, "(") {
		return specified(t, len(name), label)
	}
	return nil
}

// numberAt returns where the digits end that begin at a place.
func numberAt(t string, at int) int {
	for at < len(t) && digit(t[at]) {
		at++
	}
	return at
}

type labelMaker func(from, to int, alone bool) Jump

// labelsIn returns the labels of a computed GO TO, which are in brackets, or those of an arithmetic IF, which are behind
// them.
func labelsIn(t, word string, label labelMaker) (list []Jump) {
	from, to := len(word), closing(t, len(word))+1
	if word == "if" {
		from, to = to, len(t)
	}
	for i := max(from, len(word)); i < to; i++ {
		if end := numberAt(t, i); end > i {
			list = append(list, label(i, end, false))
			i = end
		}
	}
	return list
}

// alternates returns the labels that a call may return to: CALL F(A, *10).
func alternates(t string, label labelMaker) (list []Jump) {
	for i := 1; i+1 < len(t); i++ {
		end := numberAt(t, i+1)
		if (t[i] == '*' || t[i] == '&') && (t[i-1] == '(' || t[i-1] == ',') && end > i+1 && end < len(t) && (t[end] == ',' || t[end] == ')') {
			list = append(list, label(i+1, end, false))
		}
	}
	return list
}

// specified returns the labels in the brackets of a statement of input or output.
func specified(t string, open int, label labelMaker) (list []Jump) {
	end := closing(t, open)
	for i := open + 1; i < end; i++ {
		for _, word := range []string{"end=", "err=", "eor="} {
			from := i + len(word)
			if to := numberAt(t, from); strings.HasPrefix(t[i:], word) && (t[i-1] == '(' || t[i-1] == ',') && to > from {
				list = append(list, label(from, to, false))
			}
		}
	}
	return list
}
